// Bench-hosts measures what finding the route of a request costs in a Go server: by the core, and by the routers that Go
// servers have. It reads workloads from a folder, and prints one JSON object a line.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// workload is a set of routes, and requests with the number of the route that each is to meet, -1 for none.
type workload struct {
	Name     string
	Routes   []route
	Requests []request
	Bundle   string
}

type route struct{ Host, Path string }

type request struct {
	Host, Target string
	Expected     int
}

// contestant finds routes. pass decides all requests and writes the numbers of their routes to found; a contestant that notes
// something else has settle make numbers of it.
type contestant struct {
	name string
	// Milliseconds that it took to take the routes in.
	loaded float64
	pass   func(found []int)
	settle func(found []int)
}

const rounds = 9

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(folder string) error {
	data, err := os.ReadFile(filepath.Join(folder, "workloads.json"))
	if err != nil {
		return err
	}
	var workloads []workload
	if err := json.Unmarshal(data, &workloads); err != nil {
		return err
	}
	for _, one := range workloads {
		one.Bundle = filepath.Join(folder, one.Bundle)
		if err := measure(one); err != nil {
			return fmt.Errorf("%s: %w", one.Name, err)
		}
	}
	return nil
}

// processorTime is what this process has used of the processors, its garbage collector included: the clock on the wall would count
// what others do on the machine.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// measure lets the contestants take turns, so that a machine that slows down slows all of them down. Each is checked to find the
// routes that are expected.
func measure(w workload) error {
	contestants, end, err := contestantsOf(w)
	if err != nil {
		return err
	}
	defer end()
	found := make([]int, len(w.Requests))
	for _, one := range contestants {
		one.pass(found)
		if one.settle != nil {
			one.settle(found)
		}
		for i, request := range w.Requests {
			if found[i] != request.Expected {
				return fmt.Errorf("%s finds route %d for %s%s, not %d", one.name, found[i], request.Host, request.Target, request.Expected)
			}
		}
	}
	times := make([][]float64, len(contestants))
	for range rounds {
		for i, one := range contestants {
			start := processorTime()
			one.pass(found)
			times[i] = append(times[i], float64((processorTime()-start).Nanoseconds())/float64(len(w.Requests)))
		}
	}
	for i, one := range contestants {
		slices.Sort(times[i])
		line, err := json.Marshal(map[string]any{
			"size": w.Name, "name": one.name, "ns": times[i][rounds/2], "loaded": one.loaded,
		})
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}
