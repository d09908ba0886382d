package httpproxy

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"njet.org/kic/corehost"
)

// Statuses of answers that get headers which are not marked to be added always, as in NGINX.
var plainStatuses = []int{200, 201, 204, 206, 301, 302, 303, 304, 307, 308}

func addHeaders(header http.Header, changes []corehost.HeaderChange, status int) {
	for _, change := range changes {
		if change.Op == corehost.AddResponse && change.Value != "" && (change.Always || slices.Contains(plainStatuses, status)) {
			header.Add(change.Name, change.Value)
		}
	}
}

// errorPage is a page of the decision for an answer with a status that it lists.
type errorPage struct{ corehost.ErrorPage }

func (x *exchange) pageFor(status int) *errorPage {
	if status < 300 {
		return nil
	}
	for _, page := range x.decision.ErrorPages() {
		if slices.Contains(page.Codes, status) && (page.Status == 0 || isFinal(page.Status)) {
			return &errorPage{page}
		}
	}
	return nil
}

// content is status, headers and body of the page, in place of an answer with this status.
func (p *errorPage) content(status int, changes []corehost.HeaderChange) (int, http.Header, string) {
	header := http.Header{}
	if p.Status != 0 {
		status = p.Status
	}
	addHeaders(header, changes, status)
	if p.Redirect {
		header.Set("Location", p.Location)
		return status, header, ""
	}
	addHeaders(header, p.Headers, status)
	if p.ContentType != "" {
		header.Set("Content-Type", p.ContentType)
	}
	return status, header, p.Body
}

func (p *errorPage) write(w http.ResponseWriter, changes []corehost.HeaderChange, before int) {
	status, header, body := p.content(before, changes)
	for name, values := range header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// modify makes the client's answer of the peer's.
func (h *Handler) modify(response *http.Response) error {
	x := exchangeOf(response.Request.Context())
	if response.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	if page := x.pageFor(response.StatusCode); page != nil {
		_ = response.Body.Close()
		status, header, body := page.content(response.StatusCode, x.changes)
		response.StatusCode, response.Status = status, ""
		response.Header, response.Trailer = header, nil
		response.ContentLength = int64(len(body))
		header.Set("Content-Length", strconv.Itoa(len(body)))
		response.Body = io.NopCloser(bytes.NewReader([]byte(body)))
	} else {
		hideHeaders(response.Header, x.changes)
		addHeaders(response.Header, x.changes, response.StatusCode)
	}
	setSession(response.Header, x)
	return nil
}

// hideHeaders takes out what the decision hides, and what NGINX hides by default unless the decision passes it.
func hideHeaders(header http.Header, changes []corehost.HeaderChange) {
	named := func(op corehost.HeaderOp, name string) bool {
		return slices.ContainsFunc(changes, func(change corehost.HeaderChange) bool {
			return change.Op == op && strings.EqualFold(change.Name, name)
		})
	}
	for name := range header {
		lower := strings.ToLower(name)
		byDefault := lower == "date" || lower == "server" || lower == "x-pad" || strings.HasPrefix(lower, "x-accel-")
		if named(corehost.HideResponse, name) || byDefault && !named(corehost.PassResponse, name) {
			delete(header, name)
		}
	}
}

// setSession gives the client the cookie that leads back to its peer, where it has another or none.
func setSession(header http.Header, x *exchange) {
	attempt, upstream := &x.decision.Attempt, x.decision.Upstream
	if !attempt.NewSession || upstream == nil || upstream.SessionCookie == nil {
		return
	}
	attributes := upstream.SessionCookie
	cookie := http.Cookie{
		Name: attributes.Name, Value: attempt.Peer.Session, Path: attributes.Path, Domain: attributes.Domain,
		HttpOnly: attributes.HTTPOnly, Secure: attributes.Secure,
	}
	switch strings.ToLower(attributes.SameSite) {
	case "strict":
		cookie.SameSite = http.SameSiteStrictMode
	case "lax":
		cookie.SameSite = http.SameSiteLaxMode
	case "none":
		cookie.SameSite = http.SameSiteNoneMode
	}
	var milliseconds int64
	if string(attributes.Expires) == `"max"` {
		cookie.MaxAge = 315_360_000
	} else if json.Unmarshal(attributes.Expires, &milliseconds) == nil && milliseconds > 0 {
		cookie.MaxAge = int(milliseconds / 1000)
	}
	if cookie.MaxAge > 0 {
		cookie.Expires = time.Now().Add(time.Duration(cookie.MaxAge) * time.Second)
	}
	if text := cookie.String(); text != "" {
		header.Add("Set-Cookie", text)
	}
}
