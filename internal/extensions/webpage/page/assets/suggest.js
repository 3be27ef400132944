// What the writer of a wrong word may have meant, as internal/util/suggest guesses it.

const bare = (word) => word.replace(/[-_. ]/g, "").toLowerCase();

// nearest finds the known word that differs from the given one in case and separators only,
// or in a letter or two, or else one that is short for it.
export function nearest(word, known) {
  const same = known.find((candidate) => bare(candidate) === bare(word));
  if (same !== undefined) return same;
  let found = "";
  let least = 1 + Math.max(1, Math.floor(word.length / 3));
  for (const candidate of known) {
    if (Math.abs(candidate.length - word.length) >= least) continue;
    const d = distance(word.toLowerCase(), candidate.toLowerCase());
    if (d < least) [found, least] = [candidate, d];
  }
  return found || shortened(word.toLowerCase(), known);
}

function shortened(word, known) {
  return known.find((candidate) => {
    const [short, long] = [word, candidate.toLowerCase()].sort((a, b) => a.length - b.length);
    return short.length >= 3 && long.startsWith(short);
  }) ?? "";
}

// distance counts the letters to add, drop, change or swap.
function distance(a, b) {
  let before = [];
  let last = [];
  let row = [...Array(b.length + 1).keys()];
  for (let i = 1; i <= a.length; i++) {
    [before, last, row] = [last, row, [i]];
    for (let j = 1; j <= b.length; j++) {
      row[j] = Math.min(last[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1), last[j] + 1, row[j - 1] + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) row[j] = Math.min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.length];
}
