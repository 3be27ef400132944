package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/utils/env"
)

func init() {
	options.Injectables = append(options.Injectables, &templateOptions{})
}

// templateOptions is an option beside Karpenter's own.
type templateOptions struct {
	paths string
}

type templateOptionsKey struct{}

// AddFlags implements options.Injectable.
func (o *templateOptions) AddFlags(fs *options.FlagSet) {
	fs.StringVar(&o.paths, "resource-pool-templates-file-paths", env.WithDefaultString("RESOURCE_POOL_TEMPLATES_FILE_PATHS", ""),
		"Paths of files with ResourcePoolTemplates, separated by commas: what devices the instance types have")
}

// Parse implements options.Injectable.
func (o *templateOptions) Parse(fs *options.FlagSet, args ...string) error {
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		return fmt.Errorf("parse flags: %w", err)
	}
	return nil
}

// ToContext implements options.Injectable.
func (o *templateOptions) ToContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, templateOptionsKey{}, o)
}

// templatePaths are the paths of the option in the context.
func templatePaths(ctx context.Context) []string {
	o, _ := ctx.Value(templateOptionsKey{}).(*templateOptions)
	if o == nil || o.paths == "" {
		return nil
	}
	return strings.Split(o.paths, ",")
}
