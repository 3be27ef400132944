package namedfile

import "os"

// OpenFlags open a file to read it. Windows has no FIFOs in its file system.
const OpenFlags = os.O_RDONLY
