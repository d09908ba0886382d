package corehost

import (
	"slices"
	"testing"
)

func TestResultsInARowChangeTheStateOfAPeer(t *testing.T) {
	core, err := CompileCore(background, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close(background)
	tracker, err := core.NewHealthTracker(background, 4)
	if err != nil {
		t.Fatal(err)
	}
	rule := HealthRule{Passes: 2, Fails: 2, SlowStart: 1000}
	for slot := range uint32(2) {
		if err := tracker.Set(slot, rule, HealthUnchecked, 0); err != nil {
			t.Fatal(err)
		}
	}
	report := func(now uint32, want []HealthTransition, results ...HealthResult) {
		t.Helper()
		got, err := tracker.Report(now, results...)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v %v, not %v", got, err, want)
		}
	}
	pass, fail := HealthResult{0, true}, HealthResult{0, false}
	report(0, nil, pass, HealthResult{1, false}, HealthResult{3, true}, HealthResult{1 << 20, true})
	report(1, []HealthTransition{{0, HealthUp}, {1, HealthDown}}, pass, HealthResult{1, false})
	report(2, []HealthTransition{{0, HealthDown}}, fail, fail)
	if err := tracker.Grow(1000); err != nil {
		t.Fatal(err)
	}
	report(3, []HealthTransition{{0, HealthSlowStart}}, pass, pass)
	if state, streak, err := tracker.State(0); err != nil || state.Peer() != Up || streak < 1 {
		t.Errorf("%v %d %v", state, streak, err)
	}
	report(2000, []HealthTransition{{0, HealthUp}}, pass)
	if err := tracker.Free(0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tracker.State(0); codeOf(err) != CodeState {
		t.Errorf("a free slot has a state: %v", err)
	}
	if err := tracker.Set(1, HealthRule{Passes: 1}, HealthUp, 0); codeOf(err) != CodeSource {
		t.Errorf("%v", err)
	}
	if err := tracker.Set(1<<21, rule, HealthUp, 0); codeOf(err) != CodePointer {
		t.Errorf("%v", err)
	}
	tracker.Close()
}
