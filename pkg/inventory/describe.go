package inventory

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
)

// seed is that of a process, of which ids are.
var seed = maphash.MakeSeed()

// identify gives the kind its id, a hash of all that pools of the kind have in common.
func (k *Kind) identify() {
	var sum maphash.Hash
	sum.SetSeed(seed)
	for _, key := range k.keys {
		maphash.WriteComparable(&sum, key)
	}
	k.id = fmt.Sprintf("%x", sum.Sum64())
}

// MarshalJSON implements json.Marshaler: the id, and what the devices are, in their
// order. It is made when it is asked for, since there may be many kinds.
func (k *Kind) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		ID      string        `json:"id"`
		Devices []Description `json:"devices"`
	}{k.id, k.describe()})
}

func (k *Kind) describe() []Description {
	all := make([]Description, len(k.free))
	begin := 0
	for i, end := range k.ends {
		for j, device := range k.keys[i].facts.decode() {
			all[begin+j] = Describe(k.keys[i].driver, &device)
			all[begin+j].UUID = "" // what is kept has none
		}
		begin = end
	}
	for i := range all {
		all[i].Whole = k.Whole(i)
	}
	return all
}
