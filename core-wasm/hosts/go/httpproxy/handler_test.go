package httpproxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"njet.org/kic/corehost"
)

// site is a proxy over real connections, and the peers that the bundle names, which stand on free ports of loopback.
type site struct {
	router *corehost.Router
	proxy  *httptest.Server
	// Handlers of peers by id; of a peer without one connections are refused.
	mutex sync.Mutex
	peers map[string]*httptest.Server
}

func newSite(t *testing.T) *site {
	t.Helper()
	return newImpatientSite(t, 0)
}

// newImpatientSite is a site whose server waits for a whole request no longer than this; 0: for ever.
func newImpatientSite(t *testing.T, readTimeout time.Duration) *site {
	t.Helper()
	// One instance, so that turns and counts are as tests expect them.
	options := corehost.Options{Instances: 1, Random: func() uint32 { return 0 }, Now: func() uint32 { return 7 }}
	router, err := corehost.NewRouter(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{router: router, peers: map[string]*httptest.Server{}}
	s.load(t, "site")
	s.proxy = httptest.NewUnstartedServer(New(router, Options{DialContext: s.dial, Logger: slog.New(slog.DiscardHandler)}))
	s.proxy.Config.ReadTimeout = readTimeout
	s.proxy.Start()
	t.Cleanup(func() {
		s.proxy.Close()
		for _, peer := range s.peers {
			peer.Close()
		}
		_ = router.Close(context.Background())
	})
	return s
}

func (s *site) load(t testing.TB, name string) {
	t.Helper()
	if err := s.router.LoadFile(context.Background(), "../testdata/"+name+".njkb"); err != nil {
		t.Fatal(err)
	}
}

func (s *site) dial(ctx context.Context, network, address string) (net.Conn, error) {
	s.mutex.Lock()
	peer := s.peers[address]
	s.mutex.Unlock()
	if peer == nil {
		return nil, errors.New("refused")
	}
	return new(net.Dialer).DialContext(ctx, network, peer.Listener.Addr().String())
}

// peer starts a peer.
func (s *site) peer(id string, handler http.HandlerFunc) {
	server := httptest.NewServer(handler)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.peers[id] = server
}

var stable = []string{"10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.3:8080"}

// named starts peers that say who they are and what they were asked.
func (s *site) named(ids ...string) {
	for _, id := range ids {
		s.peer(id, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s %s %s %s", id, r.Method, r.Host, r.RequestURI)
		})
	}
}

type answered struct {
	status int
	header http.Header
	body   string
	// The server says that it closes the connection.
	closes bool
}

// raw sends a request as it is written, and reads one answer.
func (s *site) raw(t testing.TB, request string) answered {
	t.Helper()
	conn, err := net.Dial("tcp", s.proxy.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered{response.StatusCode, response.Header, string(body), response.Close}
}

func (s *site) get(t testing.TB, target string, headers ...string) answered {
	t.Helper()
	lines := append([]string{"GET " + target + " HTTP/1.1", "Host: shop.example.com"}, headers...)
	return s.raw(t, strings.Join(lines, "\r\n")+"\r\n\r\n")
}

func (s *site) post(t testing.TB, target, body string) answered {
	t.Helper()
	return s.raw(t, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: shop.example.com\r\nContent-Length: %d\r\n\r\n%s", target, len(body), body))
}

func TestARequestReachesItsPeerAsItWasWritten(t *testing.T) {
	s := newSite(t)
	s.named(stable...)
	for _, target := range []string{"/cart/a%2Fb?q=%20&c=d;e", "/cart//x?", "/cart/%7Euser/é|x"} {
		got := s.get(t, target)
		if got.status != 200 || !strings.HasSuffix(got.body, "GET shop.example.com "+target) {
			t.Errorf("%s: %d %q", target, got.status, got.body)
		}
	}
}

func TestPeersTakeTurns(t *testing.T) {
	s := newSite(t)
	s.named(stable...)
	seen := map[string]int{}
	for range 6 {
		id, _, _ := strings.Cut(s.get(t, "/cart").body, " ")
		seen[id]++
	}
	for _, id := range stable {
		if seen[id] != 2 {
			t.Errorf("%s was asked %d times", id, seen[id])
		}
	}
}

func TestACookieLeadsToTheCanary(t *testing.T) {
	s := newSite(t)
	s.named(append(stable, "10.0.1.1:8080")...)
	got := s.get(t, "/cart", "Cookie: a=b", "Cookie: beta=yes")
	if !strings.HasPrefix(got.body, "10.0.1.1:8080 ") {
		t.Errorf("%q", got.body)
	}
}

func TestRedirectsAndAnswersComeFromTheCore(t *testing.T) {
	s := newSite(t)
	got := s.get(t, "/old")
	if got.status != 301 || got.header.Get("Location") != "https://shop.example.com/old" {
		t.Errorf("%+v", got)
	}
	got = s.get(t, "/hello?name=x")
	if got.status != 200 || got.body != "hello x" || got.header.Get("Content-Type") != "text/plain" {
		t.Errorf("%+v", got)
	}
	if got = s.get(t, "/none"); got.status != 404 {
		t.Errorf("%+v", got)
	}
	if got = s.get(t, "/../x"); got.status != 400 {
		t.Errorf("%+v", got)
	}
}

func TestHeadersAreChangedBothWays(t *testing.T) {
	s := newSite(t)
	var seen http.Header
	for _, id := range stable {
		s.peer(id, func(w http.ResponseWriter, r *http.Request) {
			seen = r.Header
			w.Header().Set("X-Internal", "secret")
			w.Header().Set("Server", "peer")
			w.Header().Set("X-Accel-Redirect", "/x")
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, r.RequestURI)
		})
	}
	got := s.get(t, "/item/7", "X-Secret: s", "X-Forwarded-For: 1.2.3.4")
	if got.body != "/things/7" || seen.Get("X-From") != "shop.example.com" || seen.Get("X-Secret") != "" {
		t.Errorf("%q %v", got.body, seen)
	}
	if seen.Get("X-Forwarded-For") != "127.0.0.1" || seen.Get("X-Real-Ip") != "127.0.0.1" || seen.Get("X-Forwarded-Proto") != "http" {
		t.Errorf("%v", seen)
	}
	for name, want := range map[string]string{"X-Internal": "", "Server": "peer", "X-Accel-Redirect": "", "X-Served": "njet", "X-Fine": ""} {
		if got.header.Get(name) != want {
			t.Errorf("%s is %q", name, got.header.Get(name))
		}
	}
}

func TestErrorPagesStandForAnswersOfPeersAndOfTheProxy(t *testing.T) {
	s := newSite(t)
	for _, id := range stable {
		s.peer(id, func(w http.ResponseWriter, r *http.Request) {
			status := 200
			fmt.Sscanf(r.URL.Query().Get("status"), "%d", &status)
			w.WriteHeader(status)
			fmt.Fprint(w, "peer's own")
		})
	}
	if got := s.get(t, "/pages?status=500"); got.status != 418 || got.body != "teapot" {
		t.Errorf("%+v", got)
	}
	if got := s.get(t, "/pages?status=404"); got.status != 302 || got.header.Get("Location") != "https://shop.example.com/gone" {
		t.Errorf("%+v", got)
	}
	if got := s.get(t, "/pages?status=403"); got.status != 403 || got.body != "peer's own" {
		t.Errorf("%+v", got)
	}
	got := s.get(t, "/empty")
	if got.status != 200 || got.body != "closed: /empty" || got.header.Get("X-Late") != "soon" {
		t.Errorf("%+v", got)
	}
	for _, id := range stable {
		s.mutex.Lock()
		s.peers[id].Close()
		delete(s.peers, id)
		s.mutex.Unlock()
	}
	if got := s.get(t, "/pages"); got.status != 502 || got.body != "away" {
		t.Errorf("%+v", got)
	}
}

func TestAPeerThatIsAwayCostsNoRequest(t *testing.T) {
	s := newSite(t)
	s.named(stable[1])
	for range 6 {
		if got := s.get(t, "/cart"); got.status != 200 {
			t.Errorf("%+v", got)
		}
	}
	if got := s.post(t, "/cart", "body"); got.status != 200 {
		t.Errorf("nobody had seen the request, and yet: %+v", got)
	}
	failures := 0
	for range 6 {
		if s.get(t, "/one-try").status == 502 {
			failures++
		}
	}
	if failures != 4 {
		t.Errorf("%d of 6 failed where one try is allowed and one of three peers is there", failures)
	}
}

func TestAnAnswerThatNextUpstreamListsLeadsToAnotherPeer(t *testing.T) {
	s := newSite(t)
	busy := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(503)
	}
	s.peer(stable[0], busy)
	s.peer(stable[1], busy)
	s.named(stable[2])
	if got := s.get(t, "/careful"); got.status != 200 || !strings.HasPrefix(got.body, stable[2]) {
		t.Errorf("%+v", got)
	}
	// The two have failed, and are out: max-fails is 1.
	for range 5 {
		if got := s.post(t, "/careful", "x"); got.status != 200 {
			t.Errorf("%+v", got)
		}
	}
}

func TestARequestThatAPeerHasSeenIsNotRepeatedUnlessItIsIdempotent(t *testing.T) {
	s := newSite(t)
	var calls sync.Map
	for _, id := range stable {
		s.peer(id, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			calls.Store(r.Method+id, true)
			conn, _, _ := http.NewResponseController(w).Hijack()
			conn.Close()
		})
	}
	asked := func(method string) (count int) {
		calls.Range(func(key, _ any) bool {
			if strings.HasPrefix(key.(string), method) {
				count++
			}
			return true
		})
		return count
	}
	if got := s.post(t, "/cart", "x"); got.status != 502 || asked("POST") != 1 {
		t.Errorf("%+v, %d peers were asked", got, asked("POST"))
	}
	if got := s.get(t, "/cart"); got.status != 502 || asked("GET") != 3 {
		t.Errorf("%+v, %d peers were asked", got, asked("GET"))
	}
}

func TestASessionCookieLeadsBackToItsPeer(t *testing.T) {
	s := newSite(t)
	s.named(stable...)
	first := s.get(t, "/sticky")
	cookie := first.header.Get("Set-Cookie")
	value, _, _ := strings.Cut(cookie, ";")
	if !strings.HasPrefix(value, "shop=") || !strings.Contains(cookie, "Max-Age=3600") || !strings.Contains(cookie, "Path=/") {
		t.Fatalf("%q", cookie)
	}
	for range 4 {
		again := s.get(t, "/sticky", "Cookie: "+value)
		if again.body != first.body || again.header.Get("Set-Cookie") != "" {
			t.Errorf("%+v after %q", again, first.body)
		}
	}
}

func TestAPlaceAtAPeerIsGivenBackWhenItsAnswerHasBeenRead(t *testing.T) {
	s := newSite(t)
	release := make(chan struct{})
	s.peer("10.0.1.1:8080", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		<-release
	})
	held, err := net.Dial("tcp", s.proxy.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	fmt.Fprint(held, "GET /few HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(held), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.get(t, "/few"); got.status != 502 {
		t.Errorf("the only place was given twice: %+v", got)
	}
	close(release)
	_, _ = io.Copy(io.Discard, response.Body)
	eventually(t, func() bool { return s.get(t, "/few").status == 200 })
}

func TestAClientThatGoesAwayGivesItsPlaceBack(t *testing.T) {
	s := newSite(t)
	arrived := make(chan struct{})
	s.peer("10.0.1.1:8080", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("wait") {
			close(arrived)
			<-r.Context().Done()
		}
	})
	conn, err := net.Dial("tcp", s.proxy.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "GET /few?wait HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
	<-arrived
	conn.Close()
	eventually(t, func() bool { return s.get(t, "/few").status == 200 })
}

func TestWebSocketsPassThrough(t *testing.T) {
	s := newSite(t)
	for _, id := range stable {
		s.peer(id, func(w http.ResponseWriter, r *http.Request) {
			conn, buffered, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_, _ = io.CopyN(conn, buffered, 5)
		})
	}
	conn, err := net.Dial("tcp", s.proxy.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /cart HTTP/1.1\r\nHost: shop.example.com\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil || response.StatusCode != 101 {
		t.Fatalf("%v %v", response, err)
	}
	fmt.Fprint(conn, "hello")
	echo := make([]byte, 5)
	if _, err := io.ReadFull(reader, echo); err != nil || string(echo) != "hello" {
		t.Errorf("%q %v", echo, err)
	}
}

func TestNoRequestIsLostWhileBundlesChange(t *testing.T) {
	s := newSite(t)
	s.named(append(stable, "10.0.1.1:8080", "10.0.1.2:8080")...)
	ctx, stop := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for ctx.Err() == nil {
				if got := s.get(t, "/cart"); got.status != 200 {
					t.Errorf("%+v", got)
					return
				}
			}
		})
	}
	for i := range 30 {
		s.load(t, []string{"later", "site"}[i%2])
	}
	stop()
	wait.Wait()
}

// eventually waits for what comes true soon after.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for range 1000 {
		if holds() {
			return
		}
	}
	t.Error("in vain")
}
