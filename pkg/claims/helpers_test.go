package claims

import (
	"github.com/kwok-dra/kwok-dra/pkg/internal/claimstest"
)

// The objects that the tests are made of.
var (
	quiet         = claimstest.Quiet
	newNode       = claimstest.NewNode
	realNode      = claimstest.RealNode
	newPod        = claimstest.NewPod
	allocated     = claimstest.Allocated
	allocate      = claimstest.Allocate
	newSlice      = claimstest.NewSlice
	device        = claimstest.Device
	template      = claimstest.Template
	configuration = claimstest.Configuration
	replace       = claimstest.Replace
	consumer      = claimstest.Consumer
	say           = claimstest.Say
	statusesOf    = claimstest.StatusesOf
	noon          = claimstest.Noon
)
