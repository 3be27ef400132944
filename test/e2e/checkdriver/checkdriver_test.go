// Package checkdriver proves that kwok-dractl check-driver passes a good driver, and finds what
// is wrong with broken ones.
package checkdriver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkdriver"
	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/drivers/broken"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// TestMain lets four drivers be checked at a time, however few the cores: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// rig is a cluster, and the programs.
type rig struct {
	cluster     *cluster.Cluster
	client      kubernetes.Interface
	ctl, driver string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	programs, err := sidecar.Programs()
	require.NoError(t, err)
	r := &rig{ctl: filepath.Join(programs, "kwok-dractl"), driver: filepath.Join(t.TempDir(), "file-driver")}
	require.NoError(t, sidecar.Build(filepath.Join(sidecar.Root(), "test"), r.driver, "./drivers/cmd/file-driver"))
	r.cluster = cluster.ForTest(t, cluster.Options{Disable: []string{cluster.Scheduler, cluster.Kwok}})
	r.client, err = admin.NewClient(r.cluster.Kubeconfig())
	require.NoError(t, err)
	return r
}

// command is a check of the file driver, in the cluster unless the arguments name another.
func (r *rig) command(ctx context.Context, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, r.ctl, "check-driver")
	var driver []string
	for i, argument := range arguments {
		if argument == "--" {
			arguments, driver = arguments[:i], arguments[i+1:]
			break
		}
	}
	command.Args = append(command.Args, arguments...)
	command.Args = append(command.Args, "--", r.driver, "--node", "{node}", "--plugins", "{plugins}",
		"--registry", "{registry}", "--cdi", "{cdi}", "--kubeconfig", "{kubeconfig}", "--instance", "{instance}")
	command.Args = append(command.Args, driver...)
	command.Env = append(os.Environ(), "KUBECONFIG="+r.cluster.Kubeconfig())
	return command
}

// check runs a check to its end, and returns its report and exit code.
func (r *rig) check(t *testing.T, arguments ...string) (report checkdriver.Report, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	command := r.command(ctx, append([]string{"-o", "json"}, arguments...)...)
	var out, errOut bytes.Buffer
	command.Stdout, command.Stderr = &out, &errOut
	err := command.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		require.NoError(t, err, errOut.String())
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &report), errOut.String())
	if t.Failed() || testing.Verbose() {
		t.Log(errOut.String())
	}
	return report, command.ProcessState.ExitCode()
}

// outcomes are the statements with an outcome.
func outcomes(report checkdriver.Report, outcome string) []string {
	var ids []string
	for _, result := range report.Results {
		if result.Outcome == outcome {
			ids = append(ids, result.ID)
		}
	}
	return ids
}

// quick leaves out the statement for which drivers have 30 s.
const quick = "^(registers|publishes|prepare|unprepare|cdi|restart|reboot|kill|rolling|stops|slices-away)"

// limitsOf are the statements for a broken driver, and the time that they have.
func limitsOf(mode string) (only, limit string) {
	switch mode { // these two are waited for until the time is up
	case broken.IncompletePool:
		return quick, "30s"
	case broken.PublishOnce:
		return "registers|publishes|slices|rolling|stops", "30s"
	}
	return quick, "1m"
}

// passes checks a good driver, which takes about as long as the guide says: harness.Patience is the upper bound.
func (r *rig) passes(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(sidecar.Root(), "docs", "guides", "check-a-driver.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), "A run takes a minute and a half")
	began := time.Now()
	report, code := r.check(t, "--driver", "file.example.com")
	require.Greater(t, time.Since(began), 45*time.Second, "the page says far too much")
	require.Zero(t, code, "%+v", report)
	require.Len(t, outcomes(report, "ok"), len(report.Results), "%+v", report)
	require.Equal(t, "file.example.com", report.Driver)
}

func TestCheckDriver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	t.Run("drivers", func(t *testing.T) { // it returns when all have ended
		t.Run("good", func(t *testing.T) {
			t.Parallel()
			r.passes(t)
		})
		for mode, statement := range statements {
			t.Run(mode, func(t *testing.T) {
				t.Parallel()
				only, limit := limitsOf(mode)
				report, code := r.check(t, "--only", only, "--timeout", limit, "--", "--break", mode)
				require.Equal(t, 1, code, "%+v", report)
				require.Equal(t, []string{statement}, outcomes(report, "FAILED"), "%+v", report)
				require.Empty(t, outcomes(report, "skipped"), "%+v", report)
			})
		}
		t.Run("another name", func(t *testing.T) {
			t.Parallel()
			report, code := r.check(t, "--driver", "other.example.com", "--only", "registers|publishes")
			require.Equal(t, 1, code)
			require.Equal(t, []string{"registers"}, outcomes(report, "FAILED"))
			require.Contains(t, report.Results[0].Seen, "driver file.example.com has registered, and not other.example.com")
			require.Equal(t, []string{"publishes"}, outcomes(report, "skipped"))
		})
		for name, test := range map[string]struct {
			driver, instance, failed string
		}{
			"longest name":                      {strings.Repeat("d", 51) + ".example.com", "", ""},
			"longest name in a rolling update":  {strings.Repeat("d", 15) + ".example.com", "{instance}", ""},
			"too long a name in rolling update": {strings.Repeat("d", 16) + ".example.com", "{instance}", "registers"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				only := "^(registers|prepare-answers)"
				if test.instance != "" {
					only = "^(registers|rolling)"
				}
				report, _ := r.check(t, "--only", only, "--", "--driver", test.driver, "--instance", test.instance)
				if test.failed == "" {
					require.Empty(t, outcomes(report, "FAILED"), "%+v", report)
				} else {
					require.Equal(t, []string{test.failed}, outcomes(report, "FAILED"), "%+v", report)
					require.Contains(t, report.Results[0].Seen, "invalid argument")
				}
			})
		}
		t.Run("interrupt", func(t *testing.T) {
			t.Parallel()
			r.interrupt(t)
		})
		t.Run("own cluster", func(t *testing.T) {
			t.Parallel()
			r.ownCluster(t)
		})
	})
	r.nothingIsLeft(t)
}

// statements are what each way to break a driver contradicts.
var statements = map[string]string{
	broken.IncompletePool: "publishes",
	broken.ForeignDevice:  "prepare-answers",
	broken.PrepareOnce:    "prepare-twice",
	broken.UnknownClaim:   "unprepare-unknown",
	broken.LeaveSpec:      "cdi-removed",
	broken.NewGeneration:  "restart-slices",
	broken.Forget:         "restart-unprepare",
	broken.OldAnswers:     "reboot-prepare",
	broken.Careless:       "prepare-taken",
	broken.PublishOnce:    "slices-deleted",
}

func TestEachModeHasAStatement(t *testing.T) {
	t.Parallel()
	for _, mode := range broken.Modes() {
		require.NotEmpty(t, statements[mode], mode)
	}
}

// interrupt ends a check in the middle. The processes of its driver have a name of their own.
func (r *rig) interrupt(t *testing.T) {
	t.Helper()
	const name = "interrupted.example.com"
	command := r.command(t.Context(), "--", "--driver", name)
	require.NoError(t, command.Start())
	harness.API{T: t, Client: r.client}.Eventually(harness.Patience, func() string {
		list, err := r.client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.driver=" + name})
		require.NoError(t, err)
		if len(list.Items) == 0 {
			return "a slice"
		}
		return ""
	})
	require.NoError(t, command.Process.Signal(syscall.SIGINT))
	_ = command.Wait() // its exit code is next
	require.Equal(t, 2, command.ProcessState.ExitCode())
	running, err := exec.CommandContext(t.Context(), "ps", "-eo", "args").Output()
	require.NoError(t, err)
	require.NotContains(t, string(running), name)
}

// ownCluster has no kubeconfig, and programs as setup-envtest has them.
func (r *rig) ownCluster(t *testing.T) {
	t.Helper()
	programs := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		require.NoError(t, os.Symlink(r.cluster.Binary(name), filepath.Join(programs, name)))
	}
	command := r.command(t.Context(), "--only", "registers|publishes|prepare-batch|stops")
	command.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull, "KUBEBUILDER_ASSETS="+programs)
	out, err := command.Output()
	require.NoError(t, err, string(out))
	require.Equal(t, 4, strings.Count(string(out), "\nok "), string(out))
	running, err := exec.CommandContext(t.Context(), "ps", "-eo", "args").Output()
	require.NoError(t, err)
	require.NotContains(t, string(running), programs)
}

// nothingIsLeft looks for objects of checks that have ended. What a driver was about to write when it
// was killed, the garbage collector deletes.
func (r *rig) nothingIsLeft(t *testing.T) {
	t.Helper()
	harness.API{T: t, Client: r.client}.Eventually(harness.Patience, func() string {
		left, err := r.cluster.Kubectl(t.Context(), "get", "nodes,pods,deviceclasses,resourceclaims,resourceslices", "--all-namespaces", "-o", "name")
		require.NoError(t, err)
		return left
	})
}
