package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"go.yaml.in/yaml/v3"
)

// component is how kwokctl starts a component, as it writes it down.
type component struct {
	Name    string   `json:"name" yaml:"name"`
	Links   []string `json:"links" yaml:"links"` // those to start before
	Binary  string   `json:"binary" yaml:"binary"`
	Args    []string `json:"args" yaml:"args"`
	WorkDir string   `json:"workDir" yaml:"workDir"`
	Envs    []env    `json:"envs,omitempty" yaml:"envs"`
	Ports   []port   `json:"ports" yaml:"ports"`
}

type env struct {
	Name  string `json:"name" yaml:"name"`
	Value string `json:"value" yaml:"value"`
}

type port struct {
	Port int `json:"port" yaml:"port"`
}

// AddComponent starts one more program as a component of the cluster: it has a
// log in Logs, can be stopped and started by its name, and ends with the cluster.
// It runs in the directory of the caller, with KUBECONFIG set to Kubeconfig.
func (r *runner) AddComponent(name, program string, args ...string) error {
	return r.AddComponentWithEnv(nil, name, program, args...)
}

// AddComponentWithEnv is AddComponent with environment variables, which override others of
// the same name.
func (r *runner) AddComponentWithEnv(variables map[string]string, name, program string, args ...string) error {
	if !simpleName.MatchString(name) {
		return fmt.Errorf("add component %q: %w", name, errName)
	}
	if _, err := r.componentByName(name); !errors.Is(err, ErrUnknownComponent) {
		return errors.Join(fmt.Errorf("add component %s: there is one of that name", name), err)
	}
	program, err := exec.LookPath(program)
	if err != nil {
		return fmt.Errorf("add component %s: %w", name, err)
	}
	workDir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("add component %s: %w", name, err)
	}
	// A directory of its own: it may be called like a program of ours.
	link, err := r.linkProgram(program, r.pathOf("added", name))
	if err != nil {
		return fmt.Errorf("add component %s: %w", name, err)
	}
	added := component{
		Name:    name,
		Binary:  link,
		Args:    args,
		WorkDir: workDir,
		Envs:    []env{{Name: "KUBECONFIG", Value: r.Kubeconfig()}},
	}
	for name, value := range variables {
		added.Envs = append(added.Envs, env{Name: name, Value: value})
	}
	content, err := json.Marshal(added)
	if err != nil {
		return fmt.Errorf("encode component %s: %w", name, err)
	}
	if err := os.WriteFile(r.pathOf("added", name+addedSuffix), content, 0o644); err != nil {
		return fmt.Errorf("add component %s: %w", name, err)
	}
	return r.startComponent(added)
}

// addedSuffix marks the file that describes an added component.
const addedSuffix = ".json"

// startComponent starts a component as kwokctl does: in the background, with a log file
// and a file with the number of the process.
func (r *runner) startComponent(p component) error {
	log, err := os.OpenFile(r.logPath(p.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open log of component %s: %w", p.Name, err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(p.Binary, p.Args...)
	cmd.Dir = p.WorkDir
	cmd.Env = r.processEnvironment()
	for _, env := range p.Envs {
		cmd.Env = append(cmd.Env, env.Name+"="+env.Value)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start component %s: %w", p.Name, err)
	}
	// Its result is of no interest, but without this it would stay in the process
	// table after its end.
	go func() { _ = cmd.Wait() }()
	if err := os.WriteFile(r.pidFile(p.Name), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644); err != nil {
		return fmt.Errorf("write process number of component %s: %w", p.Name, err)
	}
	return nil
}

func (r *runner) componentByName(name string) (component, error) {
	all, err := r.allComponents()
	if err != nil {
		return component{}, err
	}
	i := slices.IndexFunc(all, func(p component) bool { return p.Name == name })
	if i < 0 {
		return component{}, fmt.Errorf("find component %q: %w", name, ErrUnknownComponent)
	}
	return all[i], nil
}

// allComponents are those that kwokctl has started and those added later.
func (r *runner) allComponents() ([]component, error) {
	all, err := r.createdComponents()
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i] = r.withFeatureGates(all[i])
	}
	files, err := filepath.Glob(r.pathOf("added", "*"+addedSuffix))
	if err != nil {
		return nil, fmt.Errorf("list added components: %w", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read added component: %w", err)
		}
		var added component
		if err := json.Unmarshal(content, &added); err != nil {
			return nil, fmt.Errorf("read added component %s: %w", file, err)
		}
		all = append(all, added)
	}
	return all, nil
}

// createdComponents reads what kwokctl has started from where it keeps it.
func (r *runner) createdComponents() ([]component, error) {
	f, err := os.Open(r.statePath("kwok.yaml"))
	if err != nil {
		return nil, fmt.Errorf("open state of kwokctl: %w", err)
	}
	defer func() { _ = f.Close() }()
	for documents := yaml.NewDecoder(f); ; {
		var document struct {
			Kind       string      `yaml:"kind"`
			Components []component `yaml:"components"`
		}
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read state of kwokctl: %w", ErrUnknownComponent)
		}
		if err != nil {
			return nil, fmt.Errorf("read state of kwokctl: %w", err)
		}
		if document.Kind == "KwokctlConfiguration" {
			return document.Components, nil
		}
	}
}
