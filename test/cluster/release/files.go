// Package release downloads the official release binaries of Kubernetes, etcd
// and kwok. Each file is held against the SHA-256 that its project or host
// publishes, and an interrupted download continues where it stopped.
package release

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"strings"
)

// The environment variables of kwokctl that name other places to download from,
// without the version.
const (
	kubernetesPrefixEnv = "KWOK_KUBE_BINARY_PREFIX"
	etcdPrefixEnv       = "KWOK_ETCD_BINARY_PREFIX"
	kwokPrefixEnv       = "KWOK_BINARY_PREFIX"
)

// A File is one program of a release.
type File struct {
	// Program is its name.
	Program string
	// URL is where the program is, or the .tar.gz archive that holds it.
	URL string
	// Member is the path of the program in the archive, empty if it is the file itself.
	Member string
	// Sums is where the SHA-256 of URL is published: alone, as sha256sum writes it,
	// or in what GitHub's API says of a release.
	Sums string
}

// Platform is an operating system and an architecture in Go's terms.
type Platform struct{ OS, Arch string }

func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Kubernetes returns the control plane and kubectl. The project releases its
// servers for Linux only.
func Kubernetes(version string, p Platform, programs ...string) ([]File, error) {
	if p.OS != "linux" {
		return nil, fmt.Errorf("download Kubernetes %s for %s: its servers are released for linux only", version, p)
	}
	var files []File
	for _, program := range programs {
		url := fmt.Sprintf("%s/%s/bin/%s/%s/%s", addressPrefix(kubernetesPrefixEnv, "https://dl.k8s.io/release"), version, p.OS, p.Arch, program)
		files = append(files, File{Program: program, URL: url, Sums: url + ".sha256"})
	}
	return files, nil
}

// Etcd returns the server.
func Etcd(version string, p Platform) []File {
	dir := addressPrefix(etcdPrefixEnv, "https://github.com/etcd-io/etcd/releases/download") + "/" + version
	name := fmt.Sprintf("etcd-%s-%s-%s", version, p.OS, p.Arch)
	return []File{{Program: "etcd", URL: dir + "/" + name + ".tar.gz", Member: name + "/etcd", Sums: dir + "/SHA256SUMS"}}
}

// Kwok returns kwok's programs. The project publishes no checksums; GitHub does
// for each file of a release. Another place must have a file SHA256SUMS.
func Kwok(version string, p Platform, programs ...string) []File {
	const repository = "kubernetes-sigs/kwok"
	dir := addressPrefix(kwokPrefixEnv, "https://github.com/"+repository+"/releases/download") + "/" + version
	sums := "https://api.github.com/repos/" + repository + "/releases/tags/" + version
	if os.Getenv(kwokPrefixEnv) != "" {
		sums = dir + "/SHA256SUMS"
	}
	var files []File
	for _, program := range programs {
		files = append(files, File{Program: program, URL: fmt.Sprintf("%s/%s-%s-%s", dir, program, p.OS, p.Arch), Sums: sums})
	}
	return files
}

func addressPrefix(env, standard string) string {
	if other := os.Getenv(env); other != "" {
		return strings.TrimSuffix(other, "/")
	}
	return standard
}

// findChecksum finds the SHA-256 of f in what is published at f.Sums.
func (f File) findChecksum(published []byte) (string, error) {
	name := path.Base(f.URL)
	found := ""
	if json.Valid(published) && strings.HasPrefix(strings.TrimSpace(string(published)), "{") {
		found = digestOfRelease(published, name)
	} else {
		found = listedChecksum(string(published), name)
	}
	if len(found) != 64 {
		return "", fmt.Errorf("find the SHA-256 of %s in %s: it is not there", name, f.Sums)
	}
	return strings.ToLower(found), nil
}

// digestOfRelease reads a release as GitHub's API describes it.
func digestOfRelease(published []byte, name string) string {
	var description struct {
		Assets []struct{ Name, Digest string }
	}
	_ = json.Unmarshal(published, &description) // valid JSON of another shape has no assets
	for _, asset := range description.Assets {
		if sum, ok := strings.CutPrefix(asset.Digest, "sha256:"); ok && asset.Name == name {
			return sum
		}
	}
	return ""
}

// listedChecksum reads a checksum alone, or lines as sha256sum writes them.
func listedChecksum(published, name string) string {
	for line := range strings.Lines(published) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 1, len(fields) == 2 && strings.TrimPrefix(fields[1], "*") == name:
			return fields[0]
		}
	}
	return ""
}
