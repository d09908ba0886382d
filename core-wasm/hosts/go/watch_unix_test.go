//go:build unix

package corehost

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestABundleFileThatCouldNotBeReadForAWhileIsTakenOnceItCan(t *testing.T) {
	path := filepath.Join(t.TempDir(), "site.njkb")
	if err := os.WriteFile(path, bundleBytes(t, "later"), 0o644); err != nil {
		t.Fatal(err)
	}
	router := newTestRouter(t, "site", constant())
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	restore := func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
	}
	// No further file can be opened.
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	defer restore()
	ctx, stop := context.WithTimeout(background, time.Minute)
	defer stop()
	var reported []error
	router.Watch(ctx, path, time.Millisecond, func(err error) {
		reported = append(reported, err)
		if err == nil {
			stop()
		} else if len(reported) == 3 {
			restore()
		}
	})
	for i, err := range reported {
		if last := i == len(reported)-1; last != (err == nil) || !last && !errors.Is(err, syscall.EMFILE) {
			t.Errorf("attempt %d: %v", i, err)
		}
	}
	if d := routed(t, router, shopRequest("/hello")); d.Text != "later " {
		t.Errorf("%q after %d attempts", d.Text, len(reported))
	}
}
