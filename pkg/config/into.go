package config

// DecodeInto decodes a document of another kind as strictly as those of kwok-dra:
// what fits is decoded, and the rest is told.
func DecodeInto(document []byte, into any) []Problem {
	value, problem := readYAML(document)
	var problems []Problem
	if problem != nil {
		problems = append(problems, *problem)
	}
	object, isObject := value.(map[string]any)
	if !isObject {
		return append(problems, Problem{Text: "not an object with apiVersion and kind"})
	}
	return append(problems, decodeObject(object, into)...)
}
