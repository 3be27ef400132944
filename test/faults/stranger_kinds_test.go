package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/kwok-dra/kwok-dra/test/drivers/file"
)

// checkpointFile is in the folder of a node.
const checkpointFile = "dra_manager_state"

// allStrangers are all that do what nobody should.
func allStrangers() []stranger {
	fifo := func(path string) error { return syscall.Mkfifo(path, 0o600) }
	endless := func(path string) error { return os.Symlink("/dev/zero", path) }
	huge := func(path string) error {
		return errors.Join(os.WriteFile(path, []byte("{"), 0o600), os.Truncate(path, 4<<30))
	}
	return []stranger{
		{name: "a FIFO for the name of a node", do: putFile("node", fifo), again: true},
		{name: "a FIFO for a checkpoint", do: putFile(checkpointFile, fifo), again: true},
		{name: "a checkpoint without an end", do: putFile(checkpointFile, endless), again: true},
		{name: "a FIFO for a CDI spec", do: putSpec(fifo), hasPod: true, viewed: true, untold: true},
		{name: "a CDI spec without an end", do: putSpec(endless), hasPod: true, viewed: true, untold: true},
		{name: "a huge checkpoint", do: putFile(checkpointFile, huge), again: true},
		{name: "a checkpoint with null", do: putFile(checkpointFile, writeCheckpoint(`{"kind": "DRACheckpoint", "apiVersion": "checkpoint.dra.kubelet.k8s.io/v1", "Entries": [null], "ClaimInfoStateList": [null]}`)), again: true},
		{name: "a checkpoint without maps", do: putFile(checkpointFile, writeCheckpoint(`{"kind": "DRACheckpoint", "apiVersion": "checkpoint.dra.kubelet.k8s.io/v1", "Entries": [{"ClaimUID": "x"}], "ClaimInfoStateList": [{"ClaimUID": "x", "ClaimName": "x", "Namespace": "y"}]}`)), again: true, untold: true},
		{name: "plugins below a file", do: movePluginsBelowAFile, edits: true, untold: true},
		{name: "plugins with a long path", do: movePlugins(withALongPath), edits: true},
		{name: "a ConfigMap with binaryData", do: writeBinaryData, edits: true},
		{name: "a template that indents", do: addTemplate(`{{ indent 400000000 \"\" }}`), edits: true},
		{name: "a template of a million devices", do: addMillion, edits: true},
		{name: "a plugin that does not register", do: withPlugin(failRegistration), hasPod: true},
		{name: "plugins that refuse to be registered", do: refuseRegistration, refuses: true, untold: true},
		{name: "a plugin that hangs", do: withPlugin(hang), hasPod: true, untold: true},
		{name: "a plugin whose health flaps", do: withPlugin(nil, flap), hasPod: true, showsHealth: true, untold: true},
	}
}

// putFile has a file of the strange node be another one.
func putFile(name string, put func(path string) error) func(ctx context.Context, s *site, f *strangers) error {
	return func(ctx context.Context, _ *site, f *strangers) error {
		path, err := f.folder(ctx, name)
		if err != nil {
			return err
		}
		return errors.Join(os.RemoveAll(path), put(path))
	}
}

// putSpec puts a CDI spec beside those of a driver that works.
func putSpec(put func(path string) error) func(ctx context.Context, s *site, f *strangers) error {
	return func(ctx context.Context, s *site, f *strangers) error {
		folder, err := f.folder(ctx, "cdi")
		if err != nil {
			return err
		}
		if err := errors.Join(os.MkdirAll(folder, 0o755), put(filepath.Join(folder, "strange.json"))); err != nil {
			return err
		}
		return withPlugin(nil)(ctx, s, f)
	}
}

// awaitFile waits until there is a file.
func awaitFile(ctx context.Context, path string) error {
	return await(ctx, "there is no "+path, func(context.Context) (bool, error) {
		_, err := os.Stat(path)
		return err == nil, err
	})
}

// writeCheckpoint writes one whose checksum is right.
func writeCheckpoint(data string) func(path string) error {
	return func(path string) error {
		content, err := json.Marshal(map[string]any{"Data": data, "Checksum": crc32.ChecksumIEEE([]byte(data))})
		return errors.Join(err, os.WriteFile(path, content, 0o600))
	}
}

// movePlugins has the folders of nodes be somewhere where there can be none.
func movePlugins(to func(s *site) (string, error)) func(ctx context.Context, s *site, f *strangers) error {
	return func(ctx context.Context, s *site, f *strangers) error {
		var err error
		if f.plugins, err = to(s); err != nil {
			return err
		}
		return f.write(ctx, s, "")
	}
}

// movePluginsBelowAFile has them be at a path that is short enough, so that it is only found out when a node's
// folder is made. It waits until that is in force: Pods end after it, and not before.
func movePluginsBelowAFile(ctx context.Context, s *site, f *strangers) error {
	dir, err := s.makeDir()
	file := filepath.Join(dir, "f")
	if err := errors.Join(err, os.WriteFile(file, nil, 0o600)); err != nil {
		return err
	}
	f.plugins = filepath.Join(file, "p")
	if err := f.edit(ctx, s); err != nil {
		return err
	}
	return await(ctx, "the configuration is not in force", func(ctx context.Context) (bool, error) {
		there, err := s.list(ctx)
		return err == nil && len(f.wrongPools(there)) == 0, err
	})
}

func withALongPath(s *site) (string, error) {
	return filepath.Join(filepath.Dir(s.timing), strings.Repeat("long", 12)), nil
}

// writeBinaryData has the ConfigMap be what kubectl makes of a file that is not UTF-8.
func writeBinaryData(ctx context.Context, s *site, f *strangers) error {
	return persist(ctx, func(ctx context.Context) error {
		_, err := s.client.CoreV1().ConfigMaps(namespace).Update(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: configMap},
			BinaryData: map[string][]byte{"all": []byte("# caf\xe9\n" + f.settings() + f.all.yaml())},
		}, metav1.UpdateOptions{})
		return err
	})
}

// addTemplate adds a template for the strange node.
func addTemplate(value string) func(ctx context.Context, s *site, f *strangers) error {
	return func(ctx context.Context, s *site, f *strangers) error {
		text := strings.Replace(poisonousTemplate(value), "values: ["+poisoned+"]", "values: ["+strangerKind+"]", 1)
		return f.write(ctx, s, strings.Replace(text, "count: 8", "count: 1", 1))
	}
}

// addMillion adds a template of a few kilobytes.
func addMillion(ctx context.Context, s *site, f *strangers) error {
	var groups strings.Builder
	for i := range 100 {
		fmt.Fprintf(&groups, "  - {name: d%d, count: 10000}\n", i)
	}
	text := strings.Replace(poisonousTemplate("x"), "values: ["+poisoned+"]", "values: ["+strangerKind+"]", 1)
	before, _, _ := strings.Cut(text, "  devices:")
	return f.write(ctx, s, before+"  devices:\n"+groups.String()+"---\n")
}

// withPlugin starts a driver on the strange node, whose calls are intercepted, and a Pod of it.
func withPlugin(intercept grpc.UnaryServerInterceptor, adjust ...func(*file.Options)) func(ctx context.Context, s *site, f *strangers) error {
	return func(ctx context.Context, s *site, f *strangers) error {
		plugin, err := s.startPlugin(ctx, f.plugins, strangeNode, intercept, adjust...)
		if err != nil {
			return err
		}
		s.ends = append(s.ends, plugin.Stop)
		return s.allocate(ctx, boundPod(strangePod, strangeNode), device{plugin.Name, strangeNode, "file-0"})
	}
}

// failRegistration has the registration fail.
func failRegistration(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if path.Base(info.FullMethod) == "NotifyRegistrationStatus" || path.Base(info.FullMethod) == "GetInfo" {
		return nil, errors.New("not today")
	}
	return handler(ctx, request)
}

// refusing is how many plugins refuse to be registered, each of them triesOfEach times at least.
// A socket has two goroutines of its own, however often it is tried.
const refusing, triesOfEach, ofEachSocket = 8, 4, 2

// refuseRegistration starts plugins that fail whenever they are told that they are registered, so that
// it is tried again and again.
func refuseRegistration(ctx context.Context, s *site, f *strangers) error {
	refuse := func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if path.Base(info.FullMethod) == "NotifyRegistrationStatus" {
			f.refusals.Add(1)
			return nil, errors.New("not today")
		}
		return handler(ctx, request)
	}
	for i := range refusing {
		plugin, err := s.startPlugin(ctx, f.plugins, strangeNode, refuse, func(o *file.Options) {
			o.Name, o.Devices = fmt.Sprintf("file-%d.example.com", i), 0
			o.Health = func(ctx context.Context, _ chan<- kubeletplugin.DeviceHealthReport) error {
				<-ctx.Done()
				return ctx.Err()
			}
		})
		if err != nil {
			return err
		}
		s.ends = append(s.ends, plugin.Stop)
	}
	return nil
}

// hang answers no call that prepares claims.
func hang(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if path.Base(info.FullMethod) == "NodePrepareResources" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return handler(ctx, request)
}

// flap reports another health of a device a hundred times in a second.
func flap(o *file.Options) {
	o.Health = func(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
		for i := 0; ; i++ {
			health := kubeletplugin.HealthStatusHealthy
			if i%2 == 0 {
				health = kubeletplugin.HealthStatusUnhealthy
			}
			report := kubeletplugin.DeviceHealthReport{Devices: []kubeletplugin.DeviceHealth{{PoolName: o.Node, DeviceName: "file-0", Health: health}}}
			select {
			case reports <- report:
			case <-ctx.Done():
				return ctx.Err()
			}
			sleep(ctx, 10*time.Millisecond)
		}
	}
}
