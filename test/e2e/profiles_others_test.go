package e2e

// otherProfiles are the cases of all profiles but NVIDIA's.
var otherProfiles = map[string]profileCase{}
