package runtest

import (
	"strings"
	"sync"
)

// Transcript is what code under test writes, safe to read meanwhile.
type Transcript struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (t *Transcript) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(text)
}

// String returns all that was written since the last Take.
func (t *Transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// Take returns what was written since the last time.
func (t *Transcript) Take() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.text.String()
	t.text.Reset()
	return text
}
