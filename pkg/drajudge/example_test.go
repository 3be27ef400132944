package drajudge_test

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// A recording of watches is judged. Two claims got the same device.
func Example() {
	recording, err := os.ReadFile("testdata/shared-by-mistake.json")
	if err != nil {
		panic(err)
	}
	history, err := drajudge.ReadWatch(bytes.NewReader(recording))
	if err != nil {
		panic(err)
	}
	for _, violation := range drajudge.Judge(context.Background(), history, drajudge.Options{}) {
		fmt.Println(violation.Statement.ID, "at version", violation.ResourceVersion)
		fmt.Println(violation.Evidence)
	}
	// Output:
	// device-once at version 7
	// device gpu.example.com/node-1/gpu-0 is allocated for request gpu while request gpu of claim first has it
}

// An Observer judges while a test runs: it takes the events of informers or watches, and looks at the end whether anything
// was left undone.
func ExampleObserver() {
	recording, err := os.ReadFile("testdata/shared-by-mistake.json")
	if err != nil {
		panic(err)
	}
	events, err := drajudge.ReadWatch(bytes.NewReader(recording))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	observer := drajudge.NewObserver(drajudge.Options{})
	for _, event := range events.Sorted() {
		for _, violation := range observer.Observe(ctx, event) {
			fmt.Println("while it ran:", violation.Statement.ID)
		}
	}
	fmt.Println("at rest:", observer.AtRest(ctx))
	// Output:
	// while it ran: device-once
	// at rest: []
}
