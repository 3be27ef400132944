package build

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster/release"
)

// releaseSuffix ends the directory of a unit that was downloaded.
const releaseSuffix = "-release"

// answerTimeout is how long the servers of the releases have to answer, all of
// them together.
const answerTimeout = 3 * time.Second

// unitsOf are the units of the given versions, each as the value of ReleaseEnv
// wants it: compiled, downloaded, or downloaded with the compiled one in reserve.
func unitsOf(v Versions, wanted string, p release.Platform) ([]unit, error) {
	compiled := compiledUnits(v)
	if wanted == "0" || wanted == "false" {
		return withReason(compiled, ReleaseEnv+"=0"), nil
	}
	downloaded, err := releasedUnits(v, p)
	switch {
	case err != nil && wanted != "":
		return nil, fmt.Errorf("%w: %s=0 compiles them", err, ReleaseEnv)
	case err != nil:
		return withReason(compiled, err.Error()), nil
	case wanted != "":
		return withReason(downloaded, ReleaseEnv+"="+wanted), nil
	}
	for i := range downloaded {
		downloaded[i].compiled = &compiled[i]
	}
	return downloaded, nil
}

func withReason(all []unit, reason string) []unit {
	for i := range all {
		all[i].reason = reason
	}
	return all
}

// releasedUnits are the units with release binaries instead of compiled ones. They
// have directories of their own, so that each says by its name what is in it.
func releasedUnits(v Versions, p release.Platform) ([]unit, error) {
	all := compiledUnits(v)
	for i := range all {
		u := &all[i]
		programs := u.programNames()
		switch _, version, _ := strings.Cut(u.name, "-"); {
		case u.program == "etcd":
			u.release = release.Etcd(version, p)
		case u.source.Path == kwokModule:
			u.release = release.Kwok(version, p, programs...)
		default:
			files, err := release.Kubernetes(version, p, programs...)
			if err != nil {
				return nil, err
			}
			u.release = files
		}
		u.name += releaseSuffix
	}
	return all, nil
}

// chooseSources asks the servers of all units that may be compiled as well, at the same
// time, and returns each unit as it is to be made.
func chooseSources(ctx context.Context, all []unit) []unit {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, fmt.Errorf("no answer within %s", answerTimeout))
	defer cancel()
	chosen := slices.Clone(all)
	var asked sync.WaitGroup
	for i, u := range all {
		if u.compiled == nil {
			continue
		}
		asked.Go(func() {
			if err := release.Ask(ctx, u.release); err != nil {
				chosen[i] = *u.compiled
				chosen[i].reason = err.Error()
			}
		})
	}
	asked.Wait()
	return chosen
}

// announceBuild says what is about to happen, why, and how long it takes when nothing
// was compiled before and nothing else runs.
func announceBuild(cache string, all []unit, cores int) string {
	if all[0].others {
		return fmt.Sprintf("Building a program of others into %s, once. With %d cores this takes %s.", cache, cores, estimateDuration(all[0].cpu, cores))
	}
	var downloaded, compiled, reasons []string
	seconds := 0
	for _, u := range all {
		if u.release != nil {
			downloaded = append(downloaded, u.moduleTitle())
		} else {
			compiled = append(compiled, u.moduleTitle())
			seconds += u.cpu
		}
		if u.reason != "" && !slices.Contains(reasons, u.reason) {
			reasons = append(reasons, u.reason)
		}
	}
	what, hint := "Compiling "+strings.Join(compiled, ", "), ""
	switch {
	case compiled == nil && reasons == nil:
		reasons = []string{"their servers answer"}
		hint = fmt.Sprintf(" %s=0 compiles them instead.", ReleaseEnv)
		fallthrough
	case compiled == nil:
		what = "Downloading " + strings.Join(downloaded, ", ")
	default:
		hint = fmt.Sprintf(" With %d cores this takes %s.", cores, estimateDuration(seconds, cores))
		if downloaded != nil {
			what = "Downloading " + strings.Join(downloaded, ", ") + ", compiling " + strings.Join(compiled, ", ")
		}
	}
	return fmt.Sprintf("%s into %s, once: %s.%s", what, cache, strings.Join(reasons, "; "), hint)
}

// estimateDuration is how long compiling takes. Machines differ by a factor of two.
func estimateDuration(cpuSeconds, cores int) string {
	quick := max(1, (cpuSeconds+59)/60/cores)
	return fmt.Sprintf("%d to %d minutes", quick, 2*quick)
}
