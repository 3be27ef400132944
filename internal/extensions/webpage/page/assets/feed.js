// The feed follows api/devices for as long as the page is to be seen.

const longest = 40_000; // a request that takes longer has lost its server
const pauses = [1000, 2000, 5000, 10_000];

// follow calls take with each answer, and tell with "live" or "lost".
export async function follow(take, tell) {
  let revision = "";
  let failures = 0;
  for (;;) {
    await untilSeen();
    try {
      const answer = await ask(revision);
      failures = 0;
      tell("live");
      if (answer) {
        revision = answer.revision;
        take(answer);
      }
    } catch {
      if (document.hidden) continue;
      tell("lost");
      await pause(pauses[Math.min(failures++, pauses.length - 1)]);
    }
  }
}

// ask returns nothing where nothing is new.
async function ask(revision) {
  const hidden = new AbortController();
  const hide = () => document.hidden && hidden.abort();
  const limit = setTimeout(() => hidden.abort(), longest);
  document.addEventListener("visibilitychange", hide);
  try {
    const query = revision ? "?since=" + encodeURIComponent(revision) : "";
    const response = await fetch("api/devices" + query, { cache: "no-store", signal: hidden.signal });
    if (!response.ok) throw new Error(response.statusText);
    return response.status === 204 ? null : await response.json();
  } finally {
    clearTimeout(limit);
    document.removeEventListener("visibilitychange", hide);
  }
}

function untilSeen() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    const seen = () => {
      if (document.hidden) return;
      document.removeEventListener("visibilitychange", seen);
      resolve();
    };
    document.addEventListener("visibilitychange", seen);
  });
}

function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
