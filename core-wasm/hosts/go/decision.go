package corehost

// Action is what to do with a request.
type Action uint8

// Actions of a decision.
const (
	Proxy    Action = 1
	Redirect Action = 2
	Return   Action = 3
)

func (a Action) String() string {
	switch a {
	case Proxy:
		return "proxy"
	case Redirect:
		return "redirect"
	case Return:
		return "return"
	default:
		return "none"
	}
}

// By says what decided.
type By uint8

// What may have decided.
const (
	ByNothing By = iota
	ByRoute
	ByGuard
	ByUnmatched
)

func (b By) String() string { return [...]string{"none", "route", "guard", "unmatched"}[b&3] }

// HeaderSource gives the headers of a request.
type HeaderSource interface {
	// HeaderValue is the value of a header by its lower-case name, and whether there is one. One that was sent several times is
	// joined with ", ", and cookie with "; ".
	HeaderValue(name string) (value string, found bool)
}

// ClientSource is a [HeaderSource] that knows the client, too. It is asked only where a rule looks at that.
type ClientSource interface {
	Client() (address string, port uint16)
}

// Request is a request as it came: nothing is decoded or lower-cased before.
type Request struct {
	// The Host header or :authority; may be empty.
	Host string
	// Path and query, or the absolute form.
	Target string
	// Whether it came over TLS.
	TLS bool
	// As sent, such as GET.
	Method string
	// HTTP/1.1, HTTP/2.0 and so on.
	Protocol string
	// Address of the client, without brackets, and its port. Where the address is empty and Headers is a [ClientSource], that is asked.
	ClientAddress string
	ClientPort    uint16
	// Asked only for what a rule looks at. Nil: there are none.
	Headers HeaderSource
}

// Origin is the rule that decided, as the objects name it.
type Origin struct {
	// Kind/namespace/name of the object that owns the rule.
	Resource string
	// Host pattern as in a bundle.
	Host string
	// The path as its object spells it; empty for a rule that is no route.
	Path string
}

// Peer is a peer of an upstream. It is shared, and never changed.
type Peer struct {
	// "ip:port", or "[ip]:port" for IPv6: as net.Dial takes it.
	ID string
	// IP literal without brackets.
	Address string
	Port    uint16
	Weight  uint16
	// Its endpoint is going away.
	Draining bool
	// Value of the session cookie that leads to it, where the upstream has one.
	Session string
}

// Attempt is a try with a peer. Done ends it.
type Attempt struct {
	Peer *Peer
	// Index of the peer in its upstream, and its position on the ring or table, or in order.
	Index    uint32
	Position uint32
	// Value of the session cookie, where the upstream has one; NewSession: the client is to be given it.
	NewSession bool

	token   uint32
	counted bool
	member  *member
}

// HeaderOp is the kind of a [HeaderChange].
type HeaderOp uint8

// Kinds of header changes; the numbers are the tags of core-wasm/ABI.md.
const (
	// Set a header of the request to the upstream; an empty value removes it.
	SetRequest HeaderOp = 1
	// Do not pass the client's headers on.
	DropRequest HeaderOp = 2
	// Add a header to the answer; without Always only to 200, 201, 204, 206, 301 to 304, 307 and 308.
	AddResponse HeaderOp = 3
	// Remove a header of the upstream's answer.
	HideResponse HeaderOp = 4
	// Pass a header that a proxy hides by default.
	PassResponse HeaderOp = 5
	// A header of the upstream's answer that has no effect on the proxy.
	IgnoreResponse HeaderOp = 6
)

// HeaderChange is a change to headers, with its value filled in.
type HeaderChange struct {
	Op          HeaderOp
	Name, Value string
	Always      bool
}

// ErrorPage stands for answers with one of Codes, of the upstream or of the proxy because of it. The first that has the status counts.
type ErrorPage struct {
	Codes []int
	// A redirect to Location, or else an answer with ContentType, Body and Headers.
	Redirect bool
	// 0: the one that the answer had.
	Status      int
	Location    string
	ContentType string
	Body        string
	Headers     []HeaderChange
}

// Setting is a setting as it stands in the image, with its value filled in: see core-wasm/ABI.md.
type Setting struct {
	Tag, Flags  uint16
	Name, Value string
}

// Decision is what to do with a request. Its texts are bytes, ready for the wire.
type Decision struct {
	Action Action
	// Of a redirect or return.
	Status int
	// Target for the upstream (path and query), location of a redirect, or body of a return.
	Text string
	// Of a return; empty where the host is to show its own page for the status.
	ContentType string
	// The upstream that was chosen, where it has a peer set: of Proxy, and of a 502 or 503 of the core. Upstream is nil for one that the
	// bundle does not describe.
	HasUpstream bool
	UpstreamKey string
	Upstream    *Upstream
	// Of Proxy: the peer. Call Attempt.Done when the exchange with it is over.
	Attempt Attempt
	// Of a 502: every peer that could be used has as many requests under way as it may.
	Busy bool
	// What the method hashes, if Hashed.
	Hash   uint32
	Hashed bool
	// What decided, and the index of the route or guard among those of its host. Origin says who owns it.
	By   By
	Rule uint32
	// In order. The array is used again when the Decision is.
	Settings []Setting

	shard *shard
}

// Shard is the host pattern whose rules decided, as bundles spell it; false where there are none.
func (d *Decision) Shard() (pattern string, found bool) {
	if d.shard == nil {
		return "", false
	}
	return d.shard.pattern, true
}

// Origin is who owns the rule that decided; false where no rule did.
func (d *Decision) Origin() (Origin, bool) {
	if d.shard == nil || d.By == ByNothing {
		return Origin{}, false
	}
	origin := Origin{Host: d.shard.pattern}
	origin.Resource, origin.Path = ruleNames(d.shard.image, d.By, d.Rule)
	return origin, true
}

// Headers are the header changes among the settings.
func (d *Decision) Headers() []HeaderChange {
	var changes []HeaderChange
	for _, setting := range d.Settings {
		if op := HeaderOp(setting.Tag); op >= SetRequest && op <= IgnoreResponse {
			changes = append(changes, HeaderChange{op, setting.Name, setting.Value, setting.Flags&1 != 0})
		}
	}
	return changes
}

const (
	tagErrorReturn   = 7
	tagErrorRedirect = 8
	tagErrorHeader   = 9
)

// ErrorPages are the error pages among the settings.
func (d *Decision) ErrorPages() []ErrorPage {
	var pages []ErrorPage
	for _, setting := range d.Settings {
		switch setting.Tag {
		case tagErrorReturn, tagErrorRedirect:
			// The core does not look into names: those of an image from elsewhere may be anything.
			if page, ok := errorPage(setting); ok {
				pages = append(pages, page)
			}
		case tagErrorHeader:
			if last := len(pages) - 1; last >= 0 && !pages[last].Redirect {
				header := HeaderChange{AddResponse, setting.Name, setting.Value, true}
				pages[last].Headers = append(pages[last].Headers, header)
			}
		}
	}
	return pages
}
