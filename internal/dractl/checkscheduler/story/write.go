package story

import (
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// WriteYAML writes a story so that Read reads it again.
func (s *Story) WriteYAML(w io.Writer) error {
	data, err := yaml.Marshal(s)
	if err != nil {
		return fmt.Errorf("write story %s: %w", s.ID, err)
	}
	_, err = w.Write(data)
	return err
}

// Read reads what WriteYAML has written.
func Read(data []byte) (*Story, error) {
	s := &Story{}
	if err := yaml.UnmarshalStrict(data, s); err != nil {
		return nil, fmt.Errorf("read story: %w", err)
	}
	return s, nil
}
