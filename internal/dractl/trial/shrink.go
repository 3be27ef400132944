package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler/story"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// Evidence is the smallest story that was found to violate a statement.
type Evidence struct {
	Seed int64 `json:"seed"`
	// Parts is how many parts the story has, of the Whole number that the seed drew.
	Parts int `json:"parts"`
	Whole int `json:"whole"`
	// Plays is how often the story, or a smaller one, was played again.
	Plays int `json:"plays"`
	// Reproduced says whether the violation was seen again. If not, the story is the whole one.
	Reproduced bool `json:"reproduced"`
	// Seen is what contradicts the statement in this story. It names objects as they were in the last play.
	Seen string `json:"seen"`
	// Story is the story as YAML, and Script the same for sh and kubectl alone.
	Story  string `json:"story"`
	Script string `json:"script"`
}

// evidenceID is the ID of stories that are printed.
const evidenceID = "story"

// mostReplays is how often a whole story is played again until it violates a statement once more: not every
// violation comes each time.
const mostReplays = 3

// Shrinker plays stories without some of their parts.
type Shrinker struct {
	// NewStory draws a story. All objects of it have the ID.
	NewStory func(id string, seed int64) *story.Story
	// Play plays a story without some of its parts, and returns what it violates.
	Play func(ctx context.Context, seed int64, without []int) ([]drajudge.Violation, error)
	// Limit is the time to shrink a story.
	Limit time.Duration
}

// Shrink looks for the smallest story of a seed that violates a statement. A violation that does not come back, a
// limit on time, or objects that a play leaves in the cluster end the search with what is known by then; the latter are an error
// beside the evidence. There is no evidence if ctx ends.
func (s *Shrinker) Shrink(ctx context.Context, seed int64, id string, seen string) (*Evidence, error) {
	whole := s.NewStory(evidenceID, seed)
	e := &Evidence{Seed: seed, Whole: whole.Parts(), Seen: seen}
	deadline := time.Now().Add(s.Limit)
	known := map[string]bool{}
	var without []int
	var left error
	// A story that cannot be played to the end is no smaller story, but for what it violates by then.
	violates := func(without []int) bool {
		text := e.textOf(s, without)
		if isViolated, isKnown := known[text]; isKnown {
			return isViolated
		}
		if ctx.Err() != nil || left != nil || time.Now().After(deadline) {
			return false
		}
		e.Plays++
		violations, err := s.Play(ctx, seed, without)
		left = leftoverOf(err)
		i := slices.IndexFunc(violations, func(v drajudge.Violation) bool { return v.Statement.ID == id })
		if i >= 0 {
			e.Seen = violations[i].Evidence
		}
		known[text] = i >= 0
		return i >= 0
	}
	for try := 1; !e.Reproduced && try <= mostReplays; try++ {
		clear(known)
		e.Reproduced = violates(nil)
	}
	if e.Reproduced {
		without = leaveOutParts(e.Whole, violates)
	}
	if ctx.Err() != nil {
		return nil, errors.Join(ctx.Err(), left)
	}
	smallest := whole.Without(without)
	e.Parts, e.Story = smallest.Parts(), e.textOf(s, without)
	var script bytes.Buffer
	if err := smallest.WriteScript(&script); err != nil {
		return nil, err
	}
	e.Script = script.String()
	return e, left
}

// textOf is the story of the evidence without some parts, as YAML. Parts that only go together have the same text.
func (e *Evidence) textOf(s *Shrinker, without []int) string {
	var text bytes.Buffer
	if err := s.NewStory(evidenceID, e.Seed).Without(without).WriteYAML(&text); err != nil {
		return fmt.Sprint(err) // it is a buffer, and the objects are our own
	}
	return text.String()
}

// describe says how small the story is.
func (e *Evidence) describe() string {
	switch {
	case e.Plays == 0:
		return fmt.Sprintf("story %d, not played again", e.Seed)
	case !e.Reproduced:
		return fmt.Sprintf("not seen again in %d plays of story %d", e.Plays, e.Seed)
	}
	return fmt.Sprintf("%d of %d parts of story %d are enough (%d plays)", e.Parts, e.Whole, e.Seed, e.Plays)
}
