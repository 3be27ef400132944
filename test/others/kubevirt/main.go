// Command kubevirt prints the PCI address of a device as KubeVirt finds it, with KubeVirt's own reader of the
// metadata files that drivers mount into containers. A module of its own, since KubeVirt chooses its own
// versions of Kubernetes' libraries.
package main

import (
	"flag"
	"fmt"
	"os"

	virtv1 "kubevirt.io/api/core/v1"
	"kubevirt.io/kubevirt/pkg/dra"
)

func main() {
	base := flag.String("base", dra.DefaultMetadataBasePath, "the `folder` of the metadata files")
	entry := flag.String("entry", "", "the `name` in the resourceClaims of the Pod")
	claim := flag.String("claim", "", "the `name` of the ResourceClaim, where the Pod names one and no template")
	request := flag.String("request", "", "the `name` of the request")
	flag.Parse()
	named := virtv1.VirtualMachineInstanceResourceClaim{}
	named.Name = *entry
	if *claim != "" {
		named.ResourceClaimName = claim
	}
	address, err := dra.GetPCIAddressForClaim(*base, []virtv1.VirtualMachineInstanceResourceClaim{named}, *entry, *request)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(address)
}
