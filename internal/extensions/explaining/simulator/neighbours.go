package simulator

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// neighbours say what the Pods that are there mean for a new one, by its own affinity, anti-affinity and spread, and by their
// anti-affinity. They judge as the scheduler's filters InterPodAffinity and PodTopologySpread do, in these words.
type neighbours struct {
	affinity, antiAffinity []*podTerm
	// repelling are the terms of Pods that are there and that are about the new one.
	repelling []*podTerm
	spread    []*spreadRule
	// isFirst says that no Pod matches the affinity but the new one itself, which may go anywhere then.
	isFirst bool
}

// podTerm is a required term of affinity or anti-affinity.
type podTerm struct {
	namespaces                  []string
	namespaceSelector, selector labels.Selector
	topologyKey                 string
	// text says which Pods the term is about, and where.
	text string
	// domains are the values of the topology key where the term counts.
	domains map[string]bool
}

// newPodTerms makes terms of a Pod. The API server merges the label keys into the selectors of Pods that are there.
func newPodTerms(pod *corev1.Pod, terms []corev1.PodAffinityTerm) ([]*podTerm, error) {
	all := make([]*podTerm, len(terms))
	for i := range terms {
		term, err := &terms[i], error(nil)
		made := &podTerm{namespaces: term.Namespaces, topologyKey: term.TopologyKey, domains: map[string]bool{}}
		if len(term.Namespaces) == 0 && term.NamespaceSelector == nil {
			made.namespaces = []string{pod.Namespace}
		}
		source := term.LabelSelector
		if pod.UID == "" {
			source = addLabelKeys(source, pod, term.MatchLabelKeys, metav1.LabelSelectorOpIn)
			source = addLabelKeys(source, pod, term.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
		}
		made.text = describePods(source) + " in the same " + term.TopologyKey
		if made.selector, err = metav1.LabelSelectorAsSelector(source); err == nil {
			made.namespaceSelector, err = metav1.LabelSelectorAsSelector(term.NamespaceSelector)
		}
		if err != nil {
			return nil, fmt.Errorf("spec.affinity: term of %s: %w", term.TopologyKey, err)
		}
		all[i] = made
	}
	return all, nil
}

// addLabelKeys adds the values that a Pod has of label keys to a selector.
func addLabelKeys(selector *metav1.LabelSelector, pod *corev1.Pod, keys []string, operator metav1.LabelSelectorOperator) *metav1.LabelSelector {
	if selector == nil {
		return nil
	}
	selector = selector.DeepCopy()
	for _, key := range keys {
		if value, found := pod.Labels[key]; found {
			selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
		}
	}
	return selector
}

// describePods says which Pods a selector selects.
func describePods(selector *metav1.LabelSelector) string {
	if selector != nil && len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return "any Pods"
	}
	return "Pods with " + metav1.FormatLabelSelector(selector)
}

// spreadRule is a topology spread constraint that a Pod must keep, with the number of matching Pods in each domain.
type spreadRule struct {
	*corev1.TopologySpreadConstraint

	selector labels.Selector
	counts   map[string]int
	least    int
	// self is one if the Pod counts, too.
	self int
}

func newSpreadRules(pod *corev1.Pod) ([]*spreadRule, error) {
	var all []*spreadRule
	for i := range pod.Spec.TopologySpreadConstraints {
		constraint := &pod.Spec.TopologySpreadConstraints[i]
		if constraint.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(addLabelKeys(constraint.LabelSelector, pod, constraint.MatchLabelKeys, metav1.LabelSelectorOpIn))
		if err != nil {
			return nil, fmt.Errorf("spec.topologySpreadConstraints: constraint of %s: %w", constraint.TopologyKey, err)
		}
		rule := &spreadRule{TopologySpreadConstraint: constraint, selector: selector, counts: map[string]int{}}
		if selector.Matches(labels.Set(pod.Labels)) {
			rule.self = 1
		}
		all = append(all, rule)
	}
	return all, nil
}

// demandOf works out what a Pod asks for, beside the Pods that are there. The error says why the Pod fits nowhere.
func (s *Scheduler) demandOf(pod *corev1.Pod) (*demand, error) {
	d, err := s.catalog.demandOf(pod)
	if err != nil || s.lacksPods {
		return d, err
	}
	if d.neighbours, err = s.neighboursOf(d, nil); d.neighbours != nil {
		// Where the Pod fits changes with each Pod that comes.
		d.kind += fmt.Sprint(s.placed, pod.Namespace, pod.Labels, pod.Spec.TopologySpreadConstraints)
	}
	return d, err
}

// neighboursOf returns what the Pods that are there mean for a new one, without some of them. It is nil if they mean nothing.
func (s *Scheduler) neighboursOf(d *demand, without map[types.UID]bool) (*neighbours, error) {
	pod, b, err := d.pod, &neighbours{}, error(nil)
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		if b.affinity, err = newPodTerms(pod, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution); err != nil {
			return nil, err
		}
	}
	if b.antiAffinity, err = newPodTerms(pod, antiAffinityOf(pod)); err != nil {
		return nil, err
	}
	if b.spread, err = newSpreadRules(pod); err != nil {
		return nil, err
	}
	b.addRepelling(s, pod, without)
	if len(b.affinity)+len(b.antiAffinity)+len(b.spread) > 0 {
		for _, n := range s.nodes {
			b.addPodsOf(n, s.catalog, d, without)
		}
	} else if len(b.repelling) == 0 {
		return nil, nil
	}
	hasMatches := slices.ContainsFunc(b.affinity, func(t *podTerm) bool { return len(t.domains) > 0 })
	b.isFirst = !hasMatches && s.areAllAbout(b.affinity, pod)
	for _, rule := range b.spread {
		rule.findLeast()
	}
	return b, nil
}

// addRepelling adds the terms of Pods that are there.
func (b *neighbours) addRepelling(s *Scheduler, pod *corev1.Pod, without map[types.UID]bool) {
	for _, other := range s.repelling {
		for _, term := range other.terms {
			if without[other.uid] || !s.isAbout(term, pod) {
				continue
			}
			at := slices.IndexFunc(b.repelling, func(known *podTerm) bool { return known.text == term.text })
			if at < 0 {
				at = len(b.repelling)
				b.repelling = append(b.repelling, &podTerm{topologyKey: term.topologyKey, text: term.text, domains: map[string]bool{}})
			}
			b.repelling[at].addDomain(other.node)
		}
	}
}

// findLeast finds the domain with the fewest Pods. Where there are fewer domains than the rule wants, it is one without Pods.
func (r *spreadRule) findLeast() {
	r.least = math.MaxInt
	for _, count := range r.counts {
		r.least = min(r.least, count)
	}
	if len(r.counts) == 0 || r.MinDomains != nil && len(r.counts) < int(*r.MinDomains) {
		r.least = 0
	}
}

// isAbout reports whether a Pod counts that is there. One that ends does not.
func (r *spreadRule) isAbout(pod, other *corev1.Pod) bool {
	return other.Namespace == pod.Namespace && other.DeletionTimestamp == nil && !r.selector.Empty() && r.selector.Matches(labels.Set(other.Labels))
}

// addPodsOf adds the Pods of a node.
func (b *neighbours) addPodsOf(n *node, c *catalog, d *demand, without map[types.UID]bool) {
	counting := slices.DeleteFunc(slices.Clone(b.spread), func(rule *spreadRule) bool { return !d.isCounted(rule, n.object) })
	if slices.ContainsFunc(b.spread, func(rule *spreadRule) bool { return !hasLabel(n.object, rule.TopologyKey) }) {
		counting = nil
	}
	for _, rule := range counting {
		rule.counts[n.object.Labels[rule.TopologyKey]] += 0 // a domain without Pods counts, too
	}
	for _, other := range n.residents {
		if without[other.UID] {
			continue
		}
		if c.areAllAbout(b.affinity, other) {
			for _, term := range b.affinity {
				term.addDomain(n.object)
			}
		}
		for _, term := range b.antiAffinity {
			if c.isAbout(term, other) {
				term.addDomain(n.object)
			}
		}
		for _, rule := range counting {
			if rule.isAbout(d.pod, other) {
				rule.counts[n.object.Labels[rule.TopologyKey]]++
			}
		}
	}
}

// SelectsNamespaces reports whether a Pod has a required term of affinity or anti-affinity that selects namespaces by their labels.
func SelectsNamespaces(pod *corev1.Pod) bool {
	terms := antiAffinityOf(pod)
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		terms = slices.Concat(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	return slices.ContainsFunc(terms, func(term corev1.PodAffinityTerm) bool {
		selector := term.NamespaceSelector
		return selector != nil && len(selector.MatchLabels)+len(selector.MatchExpressions) > 0
	})
}

// isAbout reports whether a term means a Pod.
func (c *catalog) isAbout(t *podTerm, pod *corev1.Pod) bool {
	isInNamespace := slices.Contains(t.namespaces, pod.Namespace) || t.namespaceSelector.Matches(c.namespaces[pod.Namespace])
	return isInNamespace && t.selector.Matches(labels.Set(pod.Labels))
}

// areAllAbout reports whether there are terms, and all of them mean a Pod.
func (c *catalog) areAllAbout(terms []*podTerm, pod *corev1.Pod) bool {
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(t *podTerm) bool { return !c.isAbout(t, pod) })
}

// isCounted reports whether the Pods of a node count for a rule.
func (d *demand) isCounted(rule *spreadRule, node *corev1.Node) bool {
	if rule.NodeTaintsPolicy != nil && *rule.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor && d.untoleratedTaint(node) != "" {
		return false
	}
	isSelected, _ := d.affinity.Match(node)
	return isSelected || rule.NodeAffinityPolicy != nil && *rule.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore
}

// whyApart says why the Pods that are there keep the new one from a node, or returns "".
func (b *neighbours) whyApart(node *corev1.Node) string {
	if b == nil {
		return ""
	}
	for _, rule := range b.spread {
		const broken = "didn't match pod topology spread constraints"
		if !hasLabel(node, rule.TopologyKey) {
			return fmt.Sprintf("%s: it has no label %s", broken, rule.TopologyKey)
		}
		if rule.counts[node.Labels[rule.TopologyKey]]+rule.self-rule.least > int(rule.MaxSkew) {
			return fmt.Sprintf("%s: with the Pod, its %s would have more %s than maxSkew %d permits", broken, rule.TopologyKey, describePods(rule.LabelSelector), rule.MaxSkew)
		}
	}
	for _, term := range b.affinity {
		if !hasLabel(node, term.topologyKey) || !b.isFirst && !term.hasDomain(node) {
			return "didn't match pod affinity rules: the Pod must be beside " + term.text
		}
	}
	for _, term := range b.antiAffinity {
		if term.hasDomain(node) {
			return "didn't match pod anti-affinity rules: the Pod may not be beside " + term.text
		}
	}
	for _, term := range b.repelling {
		if term.hasDomain(node) {
			return "didn't satisfy existing pods anti-affinity rules: a Pod there may not be beside " + term.text
		}
	}
	return ""
}

// addDomain adds the domain of a node, if it has one.
func (t *podTerm) addDomain(node *corev1.Node) {
	if value, found := node.Labels[t.topologyKey]; found {
		t.domains[value] = true
	}
}

// hasDomain reports whether a node is in a domain where the term counts.
func (t *podTerm) hasDomain(node *corev1.Node) bool {
	return hasLabel(node, t.topologyKey) && t.domains[node.Labels[t.topologyKey]]
}

func hasLabel(node *corev1.Node, key string) bool {
	_, found := node.Labels[key]
	return found
}

// repellent is a Pod on a node with terms of anti-affinity.
type repellent struct {
	uid   types.UID
	node  *corev1.Node
	terms []*podTerm
}

// addResident has a Pod be on the node, and returns its terms of anti-affinity, if it has any.
func (n *node) addResident(pod *corev1.Pod, of needs) []repellent {
	n.add(of.requests, of.ports)
	n.residents = append(n.residents, pod)
	if terms, err := newPodTerms(pod, antiAffinityOf(pod)); err == nil && len(terms) > 0 {
		return []repellent{{pod.UID, n.object, terms}}
	}
	return nil
}

// antiAffinityOf returns the required terms of a Pod.
func antiAffinityOf(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		return a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}
