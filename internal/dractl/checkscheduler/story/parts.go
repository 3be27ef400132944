package story

// Parts returns how many parts a story has that can be left out.
func (s *Story) Parts() int {
	p := &pruner{}
	p.pruneStory(s.deepCopy())
	return p.next
}

// Without returns the story without some of its parts, which are numbers below Parts, and without what refers to
// them. Its own parts are numbered anew.
func (s *Story) Without(parts []int) *Story {
	p := &pruner{leftOut: map[int]bool{}}
	for _, part := range parts {
		p.leftOut[part] = true
	}
	smaller := s.deepCopy()
	p.pruneStory(smaller)
	return smaller
}

// pruner leaves out parts, which it counts in the order in which it meets them.
type pruner struct {
	next    int
	leftOut map[int]bool
}

func (p *pruner) keepsNext() bool {
	keeps := !p.leftOut[p.next]
	p.next++
	return keeps
}

// pruneList leaves out elements of a list. It visits also what is within those that it leaves out, since each part
// has its number whatever else is left out.
func pruneList[T any](p *pruner, list []T, pruneElement func(*T)) []T {
	var kept []T
	for i := range list {
		keeps := p.keepsNext()
		if pruneElement != nil {
			pruneElement(&list[i])
		}
		if keeps {
			kept = append(kept, list[i])
		}
	}
	return kept
}

func (p *pruner) pruneStory(s *Story) {
	if len(s.Steps) == 0 {
		return
	}
	rest := pruneList(p, s.Steps[1:], nil)
	s.Steps = append(s.Steps[:1:1], rest...)
}
