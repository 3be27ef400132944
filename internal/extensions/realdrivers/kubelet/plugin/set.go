package plugin

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"k8s.io/klog/v2"
)

// Set has the plugins that are registered with the kubelet of one node.
type Set struct {
	options Options

	mu sync.Mutex
	// plugins maps drivers to their plugins, in the order of registration.
	plugins map[string][]*Plugin
}

// Options configure a Set. All are required.
type Options struct {
	// Endpoint checks the path of an endpoint that a plugin names, and resolves it.
	Endpoint func(named string) (string, error)
	// Changed is called when a plugin of a driver registers, unregisters, connects or disconnects.
	Changed func(driver string)
	// HealthChanged is called when the health of devices of a driver has changed.
	HealthChanged func(driver string)
	// Calls intercepts all calls of plugins.
	Calls grpc.UnaryClientInterceptor
}

// NewSet returns an empty Set. Serve fills it.
func NewSet(o Options) *Set {
	return &Set{options: o, plugins: map[string][]*Plugin{}}
}

// Get returns the plugin of a driver to call: the last connected one that has registered, or else the last one.
func (s *Set) Get(driver string) (*Plugin, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var chosen *Plugin
	for _, p := range s.plugins[driver] {
		if chosen == nil || p.connected || !chosen.connected {
			chosen = p
		}
	}
	if chosen == nil {
		return nil, fmt.Errorf("DRA driver %s is not registered", driver)
	}
	return chosen, nil
}

// Has reports whether a plugin of a driver has registered.
func (s *Set) Has(driver string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.plugins[driver]) > 0
}

// Connected reports whether a plugin of a driver is connected.
func (s *Set) Connected(driver string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.plugins[driver], func(p *Plugin) bool { return p.connected })
}

// ReportHealth reports whether any plugin has reported the health of its devices.
func (s *Set) ReportHealth() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, plugins := range s.plugins {
		if slices.ContainsFunc(plugins, (*Plugin).ReportsHealth) {
			return true
		}
	}
	return false
}

// Len counts the registered plugins.
func (s *Set) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for _, plugins := range s.plugins {
		count += len(plugins)
	}
	return count
}

// addPlugin registers a plugin, keeps it connected, and watches its health until it is removed or ctx ends.
func (s *Set) addPlugin(ctx context.Context, p *Plugin) error {
	s.mu.Lock()
	for _, other := range s.plugins[p.Driver] {
		if other.Endpoint == p.Endpoint {
			s.mu.Unlock()
			return fmt.Errorf("endpoint %s already registered for DRA driver plugin %s", p.Endpoint, p.Driver)
		}
	}
	s.plugins[p.Driver] = append(s.plugins[p.Driver], p)
	s.mu.Unlock()
	ctx, p.stop = context.WithCancel(ctx)
	klog.FromContext(ctx).V(2).Info("Registered the DRA plugin", "driver", p.Driver, "endpoint", p.Endpoint)
	s.options.Changed(p.Driver)
	p.running.Go(func() { p.keepConnected(ctx) })
	p.running.Go(func() { p.watchHealth(ctx, func() { s.options.HealthChanged(p.Driver) }) })
	return nil
}

// removePlugin unregisters a plugin, and ends everything that addPlugin has started for it.
func (s *Set) removePlugin(ctx context.Context, p *Plugin) {
	s.mu.Lock()
	s.plugins[p.Driver] = slices.DeleteFunc(s.plugins[p.Driver], func(other *Plugin) bool { return other == p })
	if len(s.plugins[p.Driver]) == 0 {
		delete(s.plugins, p.Driver)
	}
	s.mu.Unlock()
	p.stop()
	p.running.Wait()
	if err := p.conn.Close(); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to close the connection to the DRA plugin", "driver", p.Driver, "endpoint", p.Endpoint)
	}
	klog.FromContext(ctx).V(2).Info("Unregistered the DRA plugin", "driver", p.Driver, "endpoint", p.Endpoint)
	s.options.Changed(p.Driver)
}

// setConnected records whether a plugin is connected.
func (s *Set) setConnected(p *Plugin, is bool) {
	s.mu.Lock()
	isRegistered := slices.Contains(s.plugins[p.Driver], p)
	p.connected = is
	s.mu.Unlock()
	if isRegistered {
		s.options.Changed(p.Driver)
	}
}
