package page

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// pollInterval is how often a waiting request checks for a change. A check costs next to nothing.
	pollInterval = 100 * time.Millisecond
	// longPollTimeout is how long a request waits for a change before it is answered with 204.
	longPollTimeout = 25 * time.Second
	// minCompressed is the smallest answer in bytes that is compressed.
	minCompressed = 4 << 10
)

// serveDevices serves GET /api/devices: the devices that kwok-dra has published, and
// their states. The answer is at most a second old.
//
//	{
//	  "revision": "x1-7",              // opaque; changes whenever anything below changes
//	  "drivers": [{                    // totals, by name
//	    "name": "gpu.nvidia.com", "pools": 2, "incompletePools": 0,
//	    "usage": {"used": 3, "total": 16},      // in whole devices, see below
//	    "states": {"free": 11, "blocked": 1, "allocated": 1, "prepared": 1, "failing": 1, "tainted": 1},
//	    "gone": 1                      // devices of "gone" below, absent where 0; no state and no usage counts them
//	  }],
//	  "items": [{                      // nodes, and pools that nodes share, by id
//	    "id": "node/h100-0",           // or "pool/<driver>/<pool>"
//	    "node": "h100-0",              // absent for a pool that nodes share
//	    "notReady": true,              // absent unless the node is not Ready: all its devices that no claim has are blocked
//	    "pools": [{                    // by driver and name; empty for a fake node without devices
//	      "driver": "gpu.nvidia.com", "name": "h100-0", "generation": 1,
//	      "slices": 1, "resourceSliceCount": 1,   // where they differ, the pool is incomplete
//	      "usage": {"used": 1, "total": 8},
//	      "kind": "1f3a",            // what the devices are, below
//	      "devices": [{                // in the order of the slices
//	        "name": "gpu-0",
//	        "state": "prepared",       // the first that is true of tainted, failing, prepared, allocated, blocked, free
//	        "shared": true,            // absent where false; several claims can have a share
//	        "used": 0.25,              // what is taken of a shared device, absent where 0
//	        "blockedBy": "counter memory of gpu-0",  // absent unless something keeps claims from it
//	        "claims": [{               // absent where there are none; several share the device
//	          "namespace": "default", "name": "training", "prepared": true,
//	          "shareID": "...",        // absent where the device is not shared
//	          "consumedCapacity": {"memory": "20Gi"},  // what a share takes, absent where nothing
//	          "failure": "...",        // why it is not prepared or not ready, absent where it is not failing
//	          "adminAccess": true,     // absent where false; such a claim leaves the device to others
//	          "pods": ["training-0"]   // that the claim is reserved for
//	        }],
//	        "taints": [{"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z",
//	          "rule": "maintenance"}]  // the DeviceTaintRule, absent for a taint that the slice has
//	      }]
//	    }]
//	  }],
//	  "kinds": [{                      // what devices are, once for all pools of a kind
//	    "id": "1f3a",                  // opaque
//	    "devices": [{                  // in the order of the devices of these pools
//	      "whole": "gpu-0",            // the device that this one is a part of, absent where it is none
//	      "product": "NVIDIA H100 80GB HBM3", "memory": "80Gi",   // absent where no attribute or capacity says so
//	      "attributes": {"productName": "NVIDIA H100 80GB HBM3"}, // without what is of one device alone, such as a UUID
//	      "capacity": {"memory": "80Gi"}
//	    }]
//	  }],
//	  "gone": [{                       // devices that claims have and no slice publishes any more, the first 1,000
//	    "node": "h100-0",              // absent for a device that nodes share
//	    "driver": "gpu.nvidia.com", "pool": "h100-0",
//	    "name": "gpu-7", "state": "gone", "claims": [...], "taints": [...]
//	  }],
//	  "unseen": "..."                  // what could not be read, such as DeviceTaintRules, absent where nothing
//	}
//
// A device is tainted by a taint with the effect NoSchedule or NoExecute, of its slice or
// of a DeviceTaintRule that selects it. It is
// failing when it cannot be prepared for a claim, or its driver says that it is not
// ready, prepared when kwok-dra has prepared it for a claim, allocated when a claim has
// it. It is blocked when no claim has it and none can: its node is not Ready, or others have
// the counters that it needs. A shared device with claims is blocked by what it has no more of, and
// its state is that of its claims. New fields may be added; a client should ignore
// those that it does not know.
//
// The usage counts whole devices. All devices that draw on a counter set are one, of
// which as much is taken as of the counter named memory, or else of the counter of
// which the most is taken. Every other device is one, and of a shared one as much is
// taken as of that of its capacities of which the most is.
//
// The revision is the ETag, so If-None-Match is answered 304 while nothing
// changes. To follow changes, ask for /api/devices?since=<revision>: the answer
// comes as soon as there is something new, or after 25 seconds with 204 and no
// body. It has
//
//	"since": "x1-6",                   // the revision that was asked for
//	"removed": ["node/h100-1"]         // ids of items that are gone, absent where none are
//
// and "items" are only those that have changed or are new, "kinds" those that are new,
// and "drivers" and "gone" are all.
// Without "since" in an answer, the revision was not known any more, and "items"
// are all that there are.
//
// To see the fleet as it was in the last hour, ask for /api/devices?at=<time>, in the
// form 2026-01-01T00:00:00Z. The answer has
//
//	"at": "2026-01-01T00:00:00Z"       // what it shows: later than what was asked for if only that is remembered
//
// and no revision. Of devices it has names, states and claims, and of claims namespaces,
// names, prepared and adminAccess; all else of them is not remembered and left out. Kinds
// are those of an answer of now, as far as there still are such pools. It is 404 until the timeline has begun, which is when all caches are complete.
func (f *feed) serveDevices(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-cache")
	if at := r.URL.Query().Get("at"); at != "" {
		f.servePast(w, r, at)
		return
	}
	if since := r.URL.Query().Get("since"); since != "" {
		f.serveChanges(w, r, since)
		return
	}
	if tag := r.Header.Get("If-None-Match"); tag != "" && strings.Contains(tag, quoteTag(f.currentRevision())) {
		w.Header().Set("ETag", "W/"+quoteTag(f.currentRevision()))
		w.WriteHeader(http.StatusNotModified)
		return
	}
	writeAnswer(w, r, f.answerSince(""))
}

// serveChanges answers as soon as something has changed since a revision.
func (f *feed) serveChanges(w http.ResponseWriter, r *http.Request, since string) {
	var answer *Answer
	err := wait.PollUntilContextTimeout(r.Context(), pollInterval, longPollTimeout, true, func(context.Context) (bool, error) {
		answer = f.answerSince(since)
		return answer != nil, nil
	})
	switch {
	case err == nil:
		writeAnswer(w, r, answer)
	case r.Context().Err() != nil:
		http.Error(w, "kwok-dra ends", http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func quoteTag(revision string) string { return `"` + revision + `"` }

// writeAnswer sends an answer, with its revision as the ETag if it has all items.
func writeAnswer(w http.ResponseWriter, r *http.Request, answer *Answer) {
	if answer.Since == "" {
		w.Header().Set("ETag", "W/"+quoteTag(answer.Revision))
	}
	writeJSON(w, r, answer)
}

// writeJSON sends an answer as JSON. A failed write means that the client has gone.
func writeJSON(w http.ResponseWriter, r *http.Request, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Vary", "Accept-Encoding")
	if len(body) < minCompressed || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		_, _ = w.Write(body)
		return
	}
	header.Set("Content-Encoding", "gzip")
	compressed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // there is such a level
	_, _ = compressed.Write(body)
	_ = compressed.Close()
}
