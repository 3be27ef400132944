package steps

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
)

// ExplainMissing says that a claim does not exist among those of its namespace, and what may be meant: often the name
// is that of a Pod, whose claim was made from a template.
func ExplainMissing(namespace, name string, claims []*resourcev1.ResourceClaim) error {
	var names []string
	for _, claim := range claims {
		names = append(names, claim.Name)
		for _, owner := range claim.OwnerReferences {
			if owner.Kind == "Pod" && owner.Name == name {
				return fmt.Errorf("there is no claim %q in namespace %s: Pod %s has the claim %s", name, namespace, name, claim.Name)
			}
		}
	}
	return cli.NotFound(fmt.Sprintf("there is no claim %q in namespace %s", name, namespace), name, names,
		"list them with kubectl get resourceclaims -n "+namespace)
}
