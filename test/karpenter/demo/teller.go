package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/kwok-dra/kwok-dra/test/karpenter/timeline"
)

// sentences describe each step.
var sentences = map[timeline.Step]string{
	timeline.PodCreated:           "Pod {name} is created and claims 8 GPUs, which no node has",
	timeline.NodeClaimCreated:     "Karpenter creates NodeClaim {name}, and waits for pools of {detail}",
	timeline.NodeClaimLaunched:    "NodeClaim {name} is launched",
	timeline.NodeCreated:          "Node {name} of type {detail} is created",
	timeline.NodeReady:            "kwok makes the node Ready",
	timeline.PoolComplete:         "kwok-dra has published {detail}: the pool is complete",
	timeline.NodeClaimRegistered:  "NodeClaim {name} is registered",
	timeline.NodeClaimInitialized: "Karpenter has seen the pool: NodeClaim {name} is initialized",
	timeline.ClaimAllocated:       "the scheduler has allocated {detail}",
	timeline.PodBound:             "Pod {name} is bound to the node",
	timeline.PodPrepared:          "kwok-dra has prepared the claim",
	timeline.PodRunning:           "Pod {name} runs",
	timeline.PodGone:              "Pod {name} is deleted",
	timeline.NodeClaimDeleted:     "Karpenter deletes NodeClaim {name}: no Pod needs the node",
	timeline.NodeGone:             "the node is deleted",
	timeline.SlicesGone:           "kwok-dra has deleted its slices",
}

// teller prints what happens when it happens.
type teller struct {
	mu      sync.Mutex
	telling bool
	begin   time.Time
}

// startPrinting begins to print what happens, with the time since the first mark.
func (t *teller) startPrinting() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.telling, t.begin = true, time.Time{}
}

// stopPrinting ends printing.
func (t *teller) stopPrinting() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.telling = false
}

func (t *teller) printMark(mark timeline.Mark) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.telling {
		return
	}
	if t.begin.IsZero() {
		t.begin = mark.At
	}
	sentence := strings.NewReplacer("{name}", mark.Name, "{detail}", mark.Detail).Replace(sentences[mark.Step])
	fmt.Printf("%9.3f s   %s\n", mark.At.Sub(t.begin).Seconds(), sentence)
}
