package untrusted

import "os"

// Windows has no FIFOs in its file system and no such flags. Only files that the user names are read there.
const opened, noFollow, onlyFolder = os.O_RDONLY, 0, 0
