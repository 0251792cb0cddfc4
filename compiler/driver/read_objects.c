/* Reads hetucc's section from ELF objects and archives. */
#include "driver/object_sections.h"

#include <ar.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* `size` bytes of an open file from `begin` on; not mapped: a file that shrinks raises SIGBUS. */
typedef struct Bytes {
    int file;
    uint64_t begin, size;
} Bytes;

/* Opens a file; the size is 0 when opening fails or the file is not a plain file. */
static Bytes open_bytes(const char *path) {
    struct stat found;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bool plain = file >= 0 && !fstat(file, &found) && S_ISREG(found.st_mode);
    return (Bytes){file, 0, plain ? (uint64_t)found.st_size : 0};
}

static void close_bytes(Bytes bytes) {
    if (bytes.file >= 0) close(bytes.file);
}

/* Reads `count` bytes from an offset on; false when the file ends before them or reading fails. */
static bool take(Bytes bytes, uint64_t offset, void *to, uint64_t count) {
    if (offset > bytes.size || count > bytes.size - offset) return false;
    ssize_t part = 1;
    for (uint64_t done = 0; done < count && part > 0; done += (uint64_t)part)
        part = pread(bytes.file, (char *)to + done, count - done,
                     (off_t)(bytes.begin + offset + done));
    return part > 0;
}

/* Returns `count` bytes from an offset on, with a null byte added; NULL when take() fails. */
static char *take_copy(Arena *arena, Bytes bytes, uint64_t offset, uint64_t count) {
    if (offset > bytes.size || count > bytes.size - offset) return NULL;
    char *copy = arena_alloc(arena, count + 1);
    copy[count] = 0;
    return take(bytes, offset, copy, count) ? copy : NULL;
}

static bool begins_with(Bytes bytes, const char *word) {
    char head[SARMAG];
    return take(bytes, 0, head, sizeof head) && !memcmp(head, word, sizeof head);
}

static bool is_ours(const char *names, const Elf64_Shdr *strings, const Elf64_Shdr *section) {
    static const char name[] = OBJECT_SECTION;
    return section->sh_name < strings->sh_size && !strcmp(names + section->sh_name, name);
}

static void add_object(Arena *arena, Bytes object, const char *member, ObjectSections *sections) {
    static const unsigned char own[] = {ELFMAG0, ELFMAG1,    ELFMAG2,
                                        ELFMAG3, ELFCLASS64, ELFDATA2LSB};
    Elf64_Ehdr header;
    Elf64_Shdr first;
    if (!take(object, 0, &header, sizeof header) || memcmp(&header, own, sizeof own) != 0 ||
        header.e_type != ET_REL || header.e_shentsize != sizeof first ||
        !take(object, header.e_shoff, &first, sizeof first))
        return;
    size_t count = header.e_shnum ? header.e_shnum : first.sh_size;
    size_t strings = header.e_shstrndx == SHN_XINDEX ? first.sh_link : header.e_shstrndx;
    if (strings >= count || count > object.size / sizeof first) return;
    const Elf64_Shdr *table =
        (const Elf64_Shdr *)(void *)take_copy(arena, object, header.e_shoff, count * sizeof first);
    const char *names =
        table ? take_copy(arena, object, table[strings].sh_offset, table[strings].sh_size) : NULL;
    for (size_t i = 1; names && i < count; i++) {
        const char *text = is_ours(names, &table[strings], &table[i])
                               ? take_copy(arena, object, table[i].sh_offset, table[i].sh_size)
                               : NULL;
        if (text) array_push(arena, sections, (ObjectSection){member, text, table[i].sh_size});
    }
}

/* Returns a member's name: "a.o" for "a.o/"; for "/12" the name at byte 12 of the long names. */
static const char *member_name(Arena *arena, const struct ar_hdr *header, const char *names) {
    const char *name = arena_substring(arena, header->ar_name, sizeof header->ar_name);
    if (name[0] == '/' && name[1] >= '0' && name[1] <= '9') {
        size_t at = strtoul(name + 1, NULL, 10);
        name = at < strlen(names) ? arena_substring(arena, names + at, strcspn(names + at, "\n"))
                                  : name;
    }
    size_t length = strcspn(name, " ");
    while (length > 1 && name[length - 1] == '/') length--;
    return arena_substring(arena, name, length);
}

/* Adds the sections of a member of a thin archive, which is a file beside the archive. */
static void add_beside(Arena *arena, const char *archive, const char *member,
                       ObjectSections *sections) {
    const char *slash = strrchr(archive, '/');
    int folder = slash && *member != '/' ? (int)(slash + 1 - archive) : 0;
    Bytes object = open_bytes(arena_format(arena, "%.*s%s", folder, archive, member));
    add_object(arena, object, member, sections);
    close_bytes(object);
}

static void add_archive(Arena *arena, const char *path, Bytes archive, bool thin,
                        ObjectSections *sections) {
    const char *names = "";
    struct ar_hdr header;
    for (uint64_t at = SARMAG; take(archive, at, &header, sizeof header);) {
        at += sizeof header;
        uint64_t size =
            strtoull(arena_substring(arena, header.ar_size, sizeof header.ar_size), NULL, 10);
        bool table = header.ar_name[0] == '/' && strchr("/ S", header.ar_name[1]);
        bool inside = table || !thin;
        if (inside && (at > archive.size || size > archive.size - at)) return;
        if (header.ar_name[0] == '/' && header.ar_name[1] == '/')
            names = take_copy(arena, archive, at, size);
        else if (!table && thin)
            add_beside(arena, path, member_name(arena, &header, names), sections);
        else if (!table)
            add_object(arena, (Bytes){archive.file, at, size}, member_name(arena, &header, names),
                       sections);
        names = names ? names : "";
        at += inside ? size + size % 2 : 0;
    }
}

void object_sections(Arena *arena, const char *path, ObjectSections *sections) {
    Bytes file = open_bytes(path);
    bool thin = begins_with(file, "!<thin>\n");
    if (thin || begins_with(file, ARMAG)) add_archive(arena, path, file, thin, sections);
    else add_object(arena, file, NULL, sections);
    close_bytes(file);
}
