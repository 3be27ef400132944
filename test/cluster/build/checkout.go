package build

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/mod/module"
)

// Checkout is a module that is not published, in a directory which is only read.
type Checkout struct {
	// Module is its path, and the commit.
	Module module.Version
	// Dir is the directory of its go.mod.
	Dir string
	// Changed says that it is not as the commit has it. Then the programs in the cache may
	// be of other changes, so they are made again.
	Changed bool
}

// EnsureTests builds the tests of a package of the checkout, if the cache lacks them, and
// returns the path of the program.
func (c Checkout) EnsureTests(ctx context.Context, pkg string, output io.Writer) (string, error) {
	return c.ensureBuilt(ctx, testsUnit(Tests{Module: c.Module, Package: pkg}), output)
}

// EnsureCommand builds a command of the checkout, if the cache lacks it, and returns the
// path of the program.
func (c Checkout) EnsureCommand(ctx context.Context, command string, output io.Writer) (string, error) {
	return c.ensureBuilt(ctx, commandUnit(c.Module, command), output)
}

func (c Checkout) ensureBuilt(ctx context.Context, u unit, output io.Writer) (string, error) {
	u.checkout = c.Dir
	if c.Changed {
		if err := removeBuilt(u); err != nil {
			return "", err
		}
	}
	return ensureOne(ctx, u, output)
}

func removeBuilt(u unit) error {
	cache, err := Cache()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(cache, u.name)); err != nil {
		return fmt.Errorf("remove %s, which may be of other changes: %w", u, err)
	}
	return nil
}
