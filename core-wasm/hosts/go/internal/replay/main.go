// Replay is the Go host of the conformance suite: it decides the requests of a folder, and writes a line for each decision.
// test/conformance/README.md describes both.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"njet.org/kic/corehost"
)

// request is a line of the suite. Each character of its texts is one byte.
type request struct {
	Bundle   string
	Method   string
	Scheme   string
	Host     string
	Target   string
	Protocol string
	Headers  [][2]string
	Client   [2]any
	Random   uint32
	Now      uint32
}

type headers map[string]string

func (h headers) HeaderValue(name string) (string, bool) {
	value, found := h[name]
	return value, found
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: replay FOLDER")
		os.Exit(2)
	}
	out := bufio.NewWriter(os.Stdout)
	err := replay(os.Args[1], out)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func replay(folder string, out io.Writer) error {
	ctx := context.Background()
	core, err := corehost.CompileCore(ctx, nil, 0)
	if err != nil {
		return err
	}
	defer core.Close(ctx)
	file, err := os.Open(filepath.Join(folder, "requests.jsonl"))
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	if _, err := lines.ReadBytes('\n'); err != nil {
		return err
	}
	var table *corehost.Table
	var decision corehost.Decision
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		var one request
		if err == nil {
			err = json.Unmarshal(line, &one)
		}
		if err != nil {
			return err
		}
		if one.Bundle != "" {
			if table != nil {
				table.Close()
			}
			if table, err = load(ctx, core, filepath.Join(folder, one.Bundle)); err != nil {
				return err
			}
			continue
		}
		if err := table.Decide(one.asked(), one.Random, one.Now, &decision); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, decisionLine(&decision)); err != nil {
			return err
		}
		if decision.Action == corehost.Proxy {
			if err := table.Done(&decision.Attempt, false, one.Now); err != nil {
				return err
			}
		}
	}
}

func load(ctx context.Context, core *corehost.Core, path string) (*corehost.Table, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	bundle, err := corehost.ReadBundle(data)
	if err != nil {
		return nil, err
	}
	table, err := core.NewTable(ctx)
	if err != nil {
		return nil, err
	}
	return table, table.Load(bundle)
}

// raw is the bytes of a text of the suite.
func raw(text string) string {
	bytes := make([]byte, 0, len(text))
	for _, char := range text {
		bytes = append(bytes, byte(char))
	}
	return string(bytes)
}

func (r *request) asked() *corehost.Request {
	values := headers{}
	for _, header := range r.Headers {
		values[raw(header[0])] = raw(header[1])
	}
	address, _ := r.Client[0].(string)
	port, _ := r.Client[1].(float64)
	return &corehost.Request{
		Host: raw(r.Host), Target: raw(r.Target), TLS: r.Scheme == "https", Method: raw(r.Method), Protocol: r.Protocol,
		ClientAddress: address, ClientPort: uint16(port), Headers: values,
	}
}

// quoted is a text as the suite writes it.
func quoted(text string) string {
	out := []byte{'"'}
	for i := range len(text) {
		switch char := text[i]; {
		case char == '"' || char == '\\':
			out = append(out, '\\', char)
		case char < 0x20 || char > 0x7e:
			out = fmt.Appendf(out, "\\u%04x", char)
		default:
			out = append(out, char)
		}
	}
	return string(append(out, '"'))
}

// decisionLine is the line of a decision.
func decisionLine(d *corehost.Decision) string {
	const null = "null"
	text := func(there bool, value string) string {
		if !there {
			return null
		}
		return quoted(value)
	}
	number := func(there bool, value uint32) string {
		if !there {
			return null
		}
		return strconv.FormatUint(uint64(value), 10)
	}
	proxy := d.Action == corehost.Proxy
	shard, hasShard := d.Shard()
	var peer corehost.Peer
	if proxy {
		peer = *d.Attempt.Peer
	}
	line := fmt.Sprintf(`{"action":%s,"status":%d,"shard":%s,"by":%s,"rule":%s,"upstream":%s,"peer":%s,"index":%s,"position":%s`,
		quoted(d.Action.String()), d.Status, text(hasShard, shard), quoted(d.By.String()),
		number(d.By == corehost.ByRoute || d.By == corehost.ByGuard, d.Rule), text(d.HasUpstream, d.UpstreamKey),
		text(proxy, peer.ID), number(proxy, d.Attempt.Index), number(proxy, d.Attempt.Position))
	line += fmt.Sprintf(`,"hash":%s,"session":%s,"new":%t,"busy":%t,"text":%s,"type":%s,"settings":[`,
		number(d.Hashed, d.Hash), text(peer.Session != "", peer.Session), d.Attempt.NewSession, d.Busy,
		quoted(d.Text), text(d.ContentType != "", d.ContentType))
	for i, setting := range d.Settings {
		if i > 0 {
			line += ","
		}
		line += fmt.Sprintf("[%d,%d,%s,%s]", setting.Tag, setting.Flags, quoted(setting.Name), quoted(setting.Value))
	}
	return line + "]}"
}
