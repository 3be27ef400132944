package progress

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := Start(&out, "[1/2] something")
		time.Sleep(logInterval + time.Second)
		s.State("%d of %d parts", 3, 7)
		time.Sleep(logInterval)
		s.Finish(nil)
		require.Equal(t, `[1/2] something
[1/2] something: 1m0s
[1/2] something: 2m0s, 3 of 7 parts
[1/2] something: done in 2m1s
`, out.String())
	})
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := startStep(&out, "something", true)
		time.Sleep(1500 * time.Millisecond)
		s.Finish(errors.New("broken"))
		require.Equal(t, "\rsomething\x1b[K\rsomething: 1s\x1b[K\rsomething: failed after 1.5s\x1b[K\n", out.String())
	})
}
