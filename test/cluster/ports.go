package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"

	"github.com/kwok-dra/kwok-dra/test/cluster/internal/filelock"
)

// Ports come in blocks below the range from which systems take the local ports
// of outgoing connections, so that no connection can be in the way.
const (
	portsFrom     = 20000
	portsTo       = 32000
	portsPerBlock = 10
	portsUsed     = 6
	// The others are for what is added to the cluster.
	portsSpare   = 2
	portsChecked = portsUsed + portsSpare
)

var errNoPorts = errors.New("all are in use")

// ports are the ports of one cluster: a block that nobody else takes as long as
// the lock is held.
type ports struct {
	first int
	lock  *filelock.Lock
}

// takePorts finds a free block. The locks keep clusters that start at the same
// time apart; whoever else uses ports is noticed by trying to listen.
func takePorts(cache string) (ports, error) {
	blocks := (portsTo - portsFrom) / portsPerBlock
	for _, block := range rand.Perm(blocks) {
		first := portsFrom + block*portsPerBlock
		lock, err := filelock.Try(filepath.Join(cache, "ports", strconv.Itoa(first)))
		if errors.Is(err, filelock.ErrTaken) {
			continue
		}
		if err != nil {
			return ports{}, fmt.Errorf("take ports: %w", err)
		}
		if isPortFree(first) {
			return ports{first: first, lock: lock}, nil
		}
		lock.Unlock()
	}
	return ports{}, fmt.Errorf("take ports between %d and %d: %w", portsFrom, portsTo, errNoPorts)
}

func isPortFree(first int) bool {
	for port := first; port < first+portsChecked; port++ {
		l, err := net.Listen("tcp4", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}
