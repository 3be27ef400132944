// What a person types next about a device.

const taints = "dra.kwok.x-k8s.io/device-taints";

function word(text) {
  return /^[\w.,:/=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

// line is a command as a shell takes it.
export function line(...words) {
  return words.map(word).join(" ");
}

// commandsFor lists commands, each with what it is for.
export function commandsFor({ item, pool, device }) {
  const { claims = [] } = device;
  const all = [];
  for (const { namespace, name } of unique(claims, (claim) => [claim.namespace, claim.name])) {
    all.push({ about: `Show claim ${name}`, text: line("kubectl", "get", "resourceclaim", "-n", namespace, name, "-o", "yaml") });
  }
  const pods = claims.flatMap(({ namespace, pods = [], prepared }) => pods.map((name) => ({ namespace, name, prepared })));
  for (const { namespace, name, prepared } of unique(pods, (pod) => [pod.namespace, pod.name])) {
    all.push({ about: `Show Pod ${name}`, text: line("kubectl", "describe", "pod", "-n", namespace, name) });
    if (!prepared) all.push({ about: `Why Pod ${name} waits`, text: line("kwok-dractl", "why", "-n", namespace, name) });
  }
  if (item.node === undefined) return all;
  all.push({ about: "All devices of the node", text: line("kwok-dractl", "status", "node", item.node) });
  const rules = (device.taints ?? []).map((taint) => taint.rule).filter(Boolean);
  for (const rule of new Set(rules)) all.push({ about: `Show DeviceTaintRule ${rule}`, text: line("kubectl", "get", "devicetaintrule", rule, "-o", "yaml") });
  const isBroken = (device.taints ?? []).some((taint) => !taint.rule);
  if (device.state === "tainted" && isBroken) all.push({ about: "Mend what was broken so", text: line("kubectl", "annotate", "node", item.node, `${taints}-`) });
  else if (device.state !== "tainted") all.push({ about: "Break it", text: line("kubectl", "annotate", "node", item.node, `${taints}=${pool.driver}/${device.name}:example.com/broken:NoExecute`) });
  return all;
}

function unique(list, keyOf) {
  return [...new Map(list.map((one) => [keyOf(one).join("/"), one])).values()];
}

// copy puts a text into the clipboard. Browsers have an interface for that on pages that
// are served securely or by the same machine; on others a selection is copied.
export async function copy(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // it is forbidden, so try the other way
    }
  }
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  document.body.append(field);
  const focused = document.activeElement;
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  focused?.focus();
  return copied;
}
