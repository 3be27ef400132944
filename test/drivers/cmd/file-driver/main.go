// The command file-driver runs a DRA driver whose devices are files.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path"
	"strings"
	"sync"
	"syscall"

	"google.golang.org/grpc"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kwok-dra/kwok-dra/test/drivers/broken"
	"github.com/kwok-dra/kwok-dra/test/drivers/file"
)

func main() {
	o := file.Options{Exclusive: true}
	flag.StringVar(&o.Name, "driver", "file.example.com", "name of the driver")
	flag.StringVar(&o.Node, "node", "", "name of the node")
	flag.StringVar(&o.Registry, "registry", "/var/lib/kubelet/plugins_registry", "folder in which plugins register")
	flag.StringVar(&o.Plugins, "plugins", "/var/lib/kubelet/plugins", "folder of plugins")
	flag.StringVar(&o.CDI, "cdi", "/var/run/cdi", "folder of CDI specs")
	flag.IntVar(&o.Devices, "devices", 4, "number of devices")
	flag.BoolVar(&o.Report, "report", false, "show the file of each device in the status of its claim")
	flag.StringVar(&o.Instance, "instance", "", "id of this process in a rolling update")
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig file")
	mode := flag.String("break", "", "way in which the driver is broken: "+strings.Join(broken.Modes(), ", "))
	calls := flag.String("calls", "", "file to which each call is added, as a line of JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, &o, *kubeconfig, *mode, *calls)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *file.Options, kubeconfig, mode, calls string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	if o.Client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	switch {
	case mode != "" && calls != "":
		return errors.New("-break and -calls exclude each other: give one of them")
	case mode != "":
		if err := broken.Break(ctx, mode, config, o); err != nil {
			return err
		}
	case calls != "":
		o.Intercept = record(calls)
	}
	driver, err := file.Start(ctx, *o)
	if err != nil {
		return err
	}
	<-ctx.Done()
	driver.Stop()
	return nil
}

// record adds calls to a file.
func record(name string) grpc.UnaryServerInterceptor {
	var mu sync.Mutex
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		line, err := json.Marshal(map[string]any{"method": path.Base(info.FullMethod), "request": request})
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		log, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, err
		}
		if _, err := fmt.Fprintf(log, "%s\n", line); err != nil {
			return nil, err
		}
		if err := log.Close(); err != nil {
			return nil, err
		}
		return handler(ctx, request)
	}
}
