/* Verifies a checkpoint before it is loaded, by the checksums of its manifest (writing.h). */
#include "checkpoint/foreign_tensors.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "checkpoint/writing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns why a manifest could not be opened; NULL: it was opened. */
static const char *manifest_wrong(const FILE *in, const char *manifest, const char *why) {
    static char text[256];
    snprintf(text, sizeof text, "its manifest cannot be read: %s", why ? why : "");
    return in ? NULL : access(manifest, F_OK) ? "it has no manifest" : text;
}

const char *verify_checksums(const StoredFile *stored, const char *manifest, int rank, int ranks) {
    char line[256], end[32];
    uint32_t lines = 0;
    const char *why;
    FILE *in = file_read_input(manifest, &why);
    const char *wrong = manifest_wrong(in, manifest, why);
    char *chunk = memory_array(CHUNK_BYTES, 1);
    int64_t covered = 0;
    bool ended = false;
    for (int number = 0; in && !wrong && fgets(line, sizeof line, in); number++) {
        long long at = 0, bytes = 0;
        unsigned crc = 0;
        bool header = sscanf(line, "header %lld %x", &bytes, &crc) == 2;
        snprintf(end, sizeof end, MANIFEST_END, lines);
        ended = !strcmp(line, end);
        if (ended) break;
        lines = checksum(lines, line, strlen(line));
        if (!header && sscanf(line, "%lld %lld %x", &at, &bytes, &crc) != 3)
            wrong = "its manifest is damaged";
        covered += header ? 0 : bytes;
        if (wrong || number % ranks != rank) continue;
        uint32_t sum = 0;
        for (long long done = 0; done < bytes && !wrong;) {
            ssize_t part = pread(stored->descriptor, chunk,
                                 (size_t)(bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES),
                                 (off_t)((header ? 0 : stored->file.data) + at + done));
            wrong = part <= 0 ? "it is shorter than its manifest says" : NULL;
            sum = checksum(sum, chunk, part > 0 ? (size_t)part : 0);
            done += part;
        }
        wrong = wrong ? wrong : sum != crc ? "its bytes are not those of its manifest" : NULL;
    }
    free(chunk);
    if (in) fclose(in);
    return wrong                                    ? wrong
           : ended && covered == stored->file.bytes ? NULL
                                                    : "its manifest is not whole";
}
