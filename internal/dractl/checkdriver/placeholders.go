package checkdriver

import (
	"errors"
	"strings"
)

// places are what a driver learns about its fake node.
type places struct {
	node, plugins, registry, kubeconfig, cdi, driver, instance string
}

// The placeholders that not all drivers can have.
const (
	driverPlaceholder   = "{driver}"
	instancePlaceholder = "{instance}"
)

// replacePlaceholders fills in the placeholders of a command line.
func (p places) replacePlaceholders(arguments []string) []string {
	replacer := strings.NewReplacer(
		"{node}", p.node, "{plugins}", p.plugins, "{registry}", p.registry, "{kubeconfig}", p.kubeconfig, "{cdi}", p.cdi,
		driverPlaceholder, p.driver, instancePlaceholder, p.instance)
	replaced := make([]string, len(arguments))
	for i, argument := range arguments {
		replaced[i] = replacer.Replace(argument)
	}
	return replaced
}

// environmentVariables is for drivers that take no options.
func (p places) environmentVariables() []string {
	return []string{
		"NODE_NAME=" + p.node, "KUBECONFIG=" + p.kubeconfig,
		"PLUGINS_DIR=" + p.plugins, "REGISTRY_DIR=" + p.registry, "CDI_ROOT=" + p.cdi,
	}
}

// hasPlaceholder reports whether a command line has a placeholder.
func hasPlaceholder(arguments []string, placeholder string) bool {
	return strings.Contains(strings.Join(arguments, "\n"), placeholder)
}

// checkPlaceholders refuses a command line that needs an option that the user did not give.
func checkPlaceholders(arguments []string, driver string) error {
	if driver == "" && hasPlaceholder(arguments, driverPlaceholder) {
		return errors.New("COMMAND has {driver}, and no name replaces it: give --driver NAME")
	}
	return nil
}
