package claiminfo

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/extensions/util/atomicfile"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/untrusted"
)

// File is the name of the checkpoint in the folder of a node (draManagerStateFileName in
// pkg/kubelet/cm/dra).
const File = "dra_manager_state"

const (
	// maxSize bounds a checkpoint, in bytes. That of a node with 1,000 claims has half a megabyte.
	maxSize = 64 << 20
	// maxAnswer bounds a driver's answer for one claim, in bytes.
	maxAnswer = 256 << 10
)

// ErrOutdated says that another replica has written the checkpoint since it was read.
var ErrOutdated = errors.New("another replica of kwok-dra has written the file since it was read")

// checkpoint is the content of the file.
type checkpoint struct {
	Data     string
	Checksum uint32
}

type checkpointData struct {
	metav1.TypeMeta
	ClaimInfoStateList []*Info
}

var checkpointType = metav1.TypeMeta{Kind: "DRACheckpoint", APIVersion: "checkpoint.dra.kubelet.k8s.io/v1"}

// Open reads a checkpoint, if the file exists.
func Open(file string) (*Cache, error) {
	c := &Cache{file: file, infos: map[types.NamespacedName]*Info{}}
	var err error
	if c.stored, err = statFile(file); err == nil && c.stored == nil {
		return c, nil
	}
	var content []byte
	if err == nil {
		content, err = untrusted.ReadFile(file, maxSize)
	}
	if err == nil {
		c.infos, err = decodeCheckpoint(content)
	}
	if err != nil {
		return nil, fmt.Errorf("read checkpoint %s: %w: delete the node's Pods with claims of real drivers, and remove the file", file, err)
	}
	return c, nil
}

// decodeCheckpoint decodes a checkpoint, and rejects one with an incomplete entry: drivers can write the file too, and a
// disk can damage it.
func decodeCheckpoint(content []byte) (map[types.NamespacedName]*Info, error) {
	var stored checkpoint
	if err := json.Unmarshal(content, &stored); err != nil {
		return nil, err
	}
	if sum := crc32.ChecksumIEEE([]byte(stored.Data)); sum != stored.Checksum {
		return nil, fmt.Errorf("its checksum is %d and must be %d", stored.Checksum, sum)
	}
	var data checkpointData
	if err := json.Unmarshal([]byte(stored.Data), &data); err != nil {
		return nil, err
	}
	if data.TypeMeta != checkpointType {
		return nil, fmt.Errorf("its data is a %q of %q and must be a %q of %q", data.Kind, data.APIVersion, checkpointType.Kind, checkpointType.APIVersion)
	}
	infos := map[types.NamespacedName]*Info{}
	for i, info := range data.ClaimInfoStateList {
		missing := ""
		switch {
		case info == nil:
			missing = "is null"
		case info.ClaimUID == "" || info.ClaimName == "" || info.Namespace == "":
			missing = "has no ClaimUID, ClaimName or Namespace"
		case len(info.PodUIDs) == 0:
			missing = "has no PodUIDs"
		case info.DriverState == nil:
			missing = "has no DriverState"
		case infos[info.Key()] != nil:
			missing = "is of the claim of an earlier one"
		}
		if missing != "" {
			return nil, fmt.Errorf("ClaimInfoStateList[%d] %s", i, missing)
		}
		infos[info.Key()] = info
	}
	return infos, nil
}

// writeCheckpoint writes the file. The lock must be held.
func (c *Cache) writeCheckpoint() (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("checkpoint ResourceClaim state: %w", err)
		}
	}()
	infos := slices.SortedFunc(maps.Values(c.infos), func(a, b *Info) int { return strings.Compare(a.Key().String(), b.Key().String()) })
	data, err := json.Marshal(checkpointData{checkpointType, infos})
	if err != nil {
		return err
	}
	content, err := json.Marshal(checkpoint{string(data), crc32.ChecksumIEEE(data)})
	if err != nil {
		return err
	}
	if len(content) > maxSize {
		return fmt.Errorf("write %s: it would have %d bytes, more than %d: delete Pods of the node", c.file, len(content), maxSize)
	}
	if c.isFileOutdated() {
		return fmt.Errorf("write %s: %w", c.file, ErrOutdated)
	}
	if err := atomicfile.Write(c.file, content, 0o644); err != nil {
		return err
	}
	c.stored, err = statFile(c.file)
	return err
}

// IsOutdated reports whether another replica has written the file since it was read. The Cache refuses to write then, and the
// file has to be opened again.
func (c *Cache) IsOutdated() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isFileOutdated()
}

// isFileOutdated reports whether the file is no longer the one that was read or written last. A file that was removed is not
// outdated: it is written again.
func (c *Cache) isFileOutdated() bool {
	now, err := statFile(c.file)
	switch {
	case err != nil || now == nil:
		return false
	case c.stored == nil:
		return true
	}
	return !os.SameFile(now, c.stored) || now.Size() != c.stored.Size() || !now.ModTime().Equal(c.stored.ModTime())
}

// statFile returns nil if there is no file.
func statFile(file string) (fs.FileInfo, error) {
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return info, err
}
