package untrusted

// Windows has no such flags. Only files that the user names are read there.
const noFollow, onlyFolder = 0, 0
