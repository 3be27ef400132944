package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// decode reads a YAML file of the repository. A field that is not in into is a mistake, since
// GitHub would ignore it or refuse the file.
func decode(t *testing.T, path string, into any) {
	t.Helper()
	require.NoError(t, yaml.UnmarshalStrict([]byte(read(t, path)), into), path)
}

// form is an issue form, by what these use of
// https://docs.github.com/en/communities/using-templates-to-encourage-useful-issues-and-pull-requests/syntax-for-githubs-form-schema.
type form struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Title       string   `json:"title"`
	Labels      []string `json:"labels"`
	Body        []struct {
		Type       string `json:"type"`
		ID         string `json:"id"`
		Attributes struct {
			Label       string `json:"label"`
			Description string `json:"description"`
			Placeholder string `json:"placeholder"`
			Render      string `json:"render"`
			Value       string `json:"value"`
			// Options are strings of a dropdown, and objects of checkboxes.
			Options []any `json:"options"`
		} `json:"attributes"`
		Validations struct {
			Required bool `json:"required"`
		} `json:"validations"`
	} `json:"body"`
}

// TestIssueForms: GitHub accepts each form, and each asks for something that it must have.
func TestIssueForms(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(root, ".github", "ISSUE_TEMPLATE", "*.yml"))
	require.NoError(t, err)
	var names []string
	for _, path := range paths {
		name := filepath.Base(path)
		if name == "config.yml" {
			continue
		}
		names = append(names, name)
		var form form
		decode(t, ".github/ISSUE_TEMPLATE/"+name, &form)
		require.NotEmpty(t, form.Name, name)
		require.NotEmpty(t, form.Description, name)
		ids, required := map[string]bool{}, false
		for _, field := range form.Body {
			required = required || field.Validations.Required
			if field.Type == "markdown" {
				require.NotEmpty(t, field.Attributes.Value, name)
				continue
			}
			require.Contains(t, []string{"checkboxes", "dropdown", "input", "textarea"}, field.Type, name)
			require.Regexp(t, `^[a-z-]+$`, field.ID, name)
			require.False(t, ids[field.ID], "%s has id %s twice", name, field.ID)
			ids[field.ID] = true
			require.NotEmpty(t, field.Attributes.Label, "%s: %s", name, field.ID)
			require.Equal(t, field.Type == "dropdown" || field.Type == "checkboxes", len(field.Attributes.Options) > 0, "%s: options of %s", name, field.ID)
			for _, option := range field.Attributes.Options {
				_, isText := option.(string)
				require.Equal(t, field.Type == "dropdown", isText, "%s: options of %s", name, field.ID)
			}
		}
		require.True(t, required, "%s can be sent empty", name)
	}
	require.Equal(t, []string{"bug.yml", "feature.yml", "hardware-profile.yml"}, names)
}

// onMain is a file of this repository, by its address on GitHub.
var onMain = regexp.MustCompile(`https://github\.com/kwok-dra/kwok-dra/blob/main/([\w./-]+)(?:#([\w-]+))?`)

// TestAddressesOnGitHub: the forms lead to pages and headings that exist.
func TestAddressesOnGitHub(t *testing.T) {
	t.Parallel()
	count := 0
	for _, path := range files(t, ".md", ".yml") {
		for _, found := range onMain.FindAllStringSubmatch(read(t, path), -1) {
			count++
			_, err := os.Stat(filepath.Join(root, found[1]))
			require.NoError(t, err, path)
			if found[2] != "" {
				require.True(t, anchors(read(t, found[1]))[found[2]], "%s: %s has no heading for #%s", path, found[1], found[2])
			}
		}
	}
	require.Positive(t, count)
}

// TestContactLinks: whoever has a question, or found a vulnerability, is told where to go instead.
func TestContactLinks(t *testing.T) {
	t.Parallel()
	var config struct {
		BlankIssuesEnabled *bool `json:"blank_issues_enabled"`
		ContactLinks       []struct {
			Name  string `json:"name"`
			URL   string `json:"url"`
			About string `json:"about"`
		} `json:"contact_links"`
	}
	decode(t, ".github/ISSUE_TEMPLATE/config.yml", &config)
	require.NotNil(t, config.BlankIssuesEnabled)
	require.False(t, *config.BlankIssuesEnabled)
	var names []string
	for _, link := range config.ContactLinks {
		names = append(names, link.Name)
		require.Regexp(t, `^https://\S+$`, link.URL)
		require.NotEmpty(t, link.About)
	}
	require.Subset(t, names, []string{"Question", "Vulnerability"})
}

// TestOwners: each name in OWNERS is an alias, since people are named in one place.
func TestOwners(t *testing.T) {
	t.Parallel()
	var owners struct {
		Approvers []string `json:"approvers"`
		Reviewers []string `json:"reviewers"`
	}
	decode(t, "OWNERS", &owners)
	var aliases struct {
		Aliases map[string][]string `json:"aliases"`
	}
	decode(t, "OWNERS_ALIASES", &aliases)
	require.NotEmpty(t, owners.Approvers)
	for _, name := range slices.Concat(owners.Approvers, owners.Reviewers) {
		require.Contains(t, aliases.Aliases, name)
	}
}

// TestCIWorkflow: GitHub runs .ci/run within a time limit, and keeps the control plane by its
// versions, which are in files that exist.
func TestCIWorkflow(t *testing.T) {
	t.Parallel()
	const path = ".github/workflows/ci.yaml"
	var workflow struct {
		Name        string            `json:"name"`
		On          map[string]any    `json:"on"`
		Permissions map[string]string `json:"permissions"`
		Concurrency map[string]any    `json:"concurrency"`
		Jobs        map[string]struct {
			RunsOn         string `json:"runs-on"`
			TimeoutMinutes int    `json:"timeout-minutes"`
			Steps          []struct {
				Name string         `json:"name"`
				Uses string         `json:"uses"`
				With map[string]any `json:"with"`
				Run  string         `json:"run"`
			} `json:"steps"`
		} `json:"jobs"`
	}
	decode(t, path, &workflow)
	require.Contains(t, workflow.On, "pull_request")
	require.Equal(t, map[string]string{"contents": "read"}, workflow.Permissions)
	job := workflow.Jobs["ci"]
	require.Positive(t, job.TimeoutMinutes)
	var run []string
	var kept string
	for _, step := range job.Steps {
		require.NotEqual(t, step.Uses == "", step.Run == "", "a step uses an action or runs commands: %+v", step)
		if step.Run != "" {
			run = append(run, step.Run)
		}
		if step.With["path"] == "~/.cache/kwok-dra" {
			kept = step.With["key"].(string)
		}
	}
	require.Equal(t, []string{".ci/run"}, run)
	status, err := os.Stat(filepath.Join(root, ".ci", "run"))
	require.NoError(t, err)
	require.NotZero(t, status.Mode()&0o100, "GitHub runs it")
	for _, file := range regexp.MustCompile(`'([^']+)'`).FindAllStringSubmatch(kept, -1) {
		require.FileExists(t, filepath.Join(root, file[1]))
	}
	require.Contains(t, kept, "test/cluster/build/versions.go")
	require.Contains(t, read(t, "test/cluster/build/versions.go"), "defaultKubernetes = ")
	require.NotContains(t, read(t, path), "secrets.", "a pull request gets no secret")
}
