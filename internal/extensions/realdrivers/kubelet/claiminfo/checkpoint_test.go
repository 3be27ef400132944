package claiminfo

import (
	"encoding/json"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// encode makes a checkpoint of data, with the right checksum.
func encode(t testing.TB, data string) []byte {
	t.Helper()
	content, err := json.Marshal(checkpoint{data, crc32.ChecksumIEEE([]byte(data))})
	require.NoError(t, err)
	return content
}

// entries is data with those entries.
func entries(list string) string {
	return `{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1","ClaimInfoStateList":` + list + `}`
}

const entry = `{"ClaimUID":"1","ClaimName":"c","Namespace":"ns","PodUIDs":{"pod":{}},"DriverState":{"d":{"Devices":null}}}`

// TestDamagedCheckpoint: a file that does not say all that is needed is an error that says what is
// missing and what to do.
func TestDamagedCheckpoint(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state")
	prepare(t, open(t, file), "pod", claim("c", "1", "d"))
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	for name, test := range map[string]struct{ content, want string }{
		"checksum":    {strings.Replace(string(whole), "device-of-d", "device-of-e", 1), "its checksum is"},
		"cut":         {string(whole[:len(whole)/2]), "unexpected end of JSON input"},
		"empty":       {"", "unexpected end of JSON input"},
		"null":        {"null", "unexpected end of JSON input"},
		"list":        {"[]", "cannot unmarshal array"},
		"no data":     {string(encode(t, "null")), `its data is a "" of ""`},
		"other":       {string(encode(t, strings.Replace(entries("[]"), "/v1", "/v2", 1))), "checkpoint.dra.kubelet.k8s.io/v2"},
		"null entry":  {string(encode(t, entries("["+entry+",null]"))), "ClaimInfoStateList[1] is null"},
		"empty entry": {string(encode(t, entries("[{}]"))), "ClaimInfoStateList[0] has no ClaimUID, ClaimName or Namespace"},
		"no pods":     {string(encode(t, entries("["+strings.Replace(entry, "PodUIDs", "Pods", 1)+"]"))), "ClaimInfoStateList[0] has no PodUIDs"},
		"null pods":   {string(encode(t, entries("["+strings.Replace(entry, `{"pod":{}}`, "null", 1)+"]"))), "ClaimInfoStateList[0] has no PodUIDs"},
		"no drivers":  {string(encode(t, entries("["+strings.Replace(entry, "DriverState", "Drivers", 1)+"]"))), "ClaimInfoStateList[0] has no DriverState"},
		"twice":       {string(encode(t, entries("["+entry+","+entry+"]"))), "ClaimInfoStateList[1] is of the claim of an earlier one"},
		"wrong type":  {string(encode(t, entries("["+strings.Replace(entry, `"ns"`, "1", 1)+"]"))), "cannot unmarshal number"},
	} {
		require.NoError(t, os.WriteFile(file, []byte(test.content), 0o600))
		_, err := Open(file)
		require.ErrorContains(t, err, test.want, name)
		require.ErrorContains(t, err, "delete the node's Pods with claims of real drivers, and remove the file", name)
	}
}

// TestCheckpointIsNoFile: what a driver puts in the place of the file holds up nobody, and is not taken
// for a node where nothing is prepared.
func TestCheckpointIsNoFile(t *testing.T) {
	t.Parallel()
	for want, put := range map[string]func(path string) error{
		"it is a FIFO":          func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"it is a directory":     func(path string) error { return os.Mkdir(path, 0o755) },
		"it is a symbolic link": func(path string) error { return os.Symlink("none", path) },
		"more than": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, maxSize+1))
		},
	} {
		file := filepath.Join(t.TempDir(), "state")
		require.NoError(t, put(file))
		_, err := Open(file)
		require.ErrorContains(t, err, want)
	}
}

// TestLargeAnswer: a driver cannot make the checkpoint too large to be read again.
func TestLargeAnswer(t *testing.T) {
	t.Parallel()
	c := open(t, filepath.Join(t.TempDir(), "state"))
	joined := claim("c", "1", "d")
	_, err := c.Join("pod", []Claim{joined})
	require.NoError(t, err)
	require.NoError(t, c.SetDevices(joined, "d", []Device{{DeviceName: strings.Repeat("x", maxAnswer/2)}}))
	err = c.SetDevices(joined, "d", []Device{{DeviceName: strings.Repeat("x", maxAnswer)}})
	require.ErrorContains(t, err, "bytes for ResourceClaim c, of which the checkpoint keeps at most 262144")
	require.Len(t, c.Devices(joined.ResourceClaim, "d")[0].DeviceName, maxAnswer/2)
}

// TestOutdated: what another replica has written is not overwritten by what was read before.
func TestOutdated(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state")
	first := open(t, file)
	prepare(t, first, "a", claim("a", "1", "d"))
	second := open(t, file)
	require.False(t, first.IsOutdated())
	prepare(t, second, "b", claim("b", "2", "d"))
	require.True(t, first.IsOutdated())
	require.False(t, second.IsOutdated())
	_, err := first.Join("c", []Claim{claim("c", "3", "d")})
	require.ErrorIs(t, err, ErrOutdated)
	require.ElementsMatch(t, []types.UID{"a", "b"}, open(t, file).Pods().UnsortedList())

	unread := open(t, filepath.Join(t.TempDir(), "none"))
	require.NoError(t, os.WriteFile(unread.file, encode(t, entries("[]")), 0o600))
	require.True(t, unread.IsOutdated(), "there was none")
	require.NoError(t, os.Remove(unread.file))
	prepare(t, unread, "a", claim("a", "1", "d"))
}

// FuzzDecode: whatever a checkpoint says, it is an error or can be used and stored.
func FuzzDecode(f *testing.F) {
	for _, data := range []string{"", "null", entries("[]"), entries("[" + entry + "]"), entries("[" + entry + ",null]"), entries("[{}]"), entries(`[{"PodUIDs":null}]`)} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data string) {
		infos, err := decodeCheckpoint(encode(t, data))
		if err != nil {
			return
		}
		c := &Cache{file: filepath.Join(t.TempDir(), "state"), infos: infos}
		for pod := range c.Pods() {
			last := c.Leave(pod)
			for i := range last {
				require.NotNil(t, infos[last[i].Key()])
				require.NoError(t, c.SetDevices(Claim{ResourceClaim: claim(last[i].ClaimName, last[i].ClaimUID).ResourceClaim}, "d", nil))
			}
			require.NoError(t, c.SetUnprepared(last, nil))
		}
		require.Empty(t, c.Pods())
		_, err = Open(c.file)
		require.NoError(t, err)
	})
}
