#include "driver/object_sections.h"

#include <ar.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The bytes of a file. */
typedef struct Bytes {
    const char *at;
    size_t size;
} Bytes;

/* Maps a file into memory; size 0 on failure. */
static Bytes map_file(const char *path) {
    struct stat found;
    Bytes bytes = {0};
    int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bool plain = file >= 0 && !fstat(file, &found) && S_ISREG(found.st_mode) && found.st_size > 0;
    void *at =
        plain ? mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    if (at != MAP_FAILED) bytes = (Bytes){at, (size_t)found.st_size};
    if (file >= 0) close(file);
    return bytes;
}

static void unmap(Bytes bytes) {
    if (bytes.size) munmap((void *)bytes.at, bytes.size);
}

/* Returns whether `count` bytes exist from an offset on. */
static bool has(Bytes bytes, uint64_t offset, uint64_t count) {
    return offset <= bytes.size && count <= bytes.size - offset;
}

static bool begins_with(Bytes bytes, const char *word) {
    return has(bytes, 0, strlen(word)) && !memcmp(bytes.at, word, strlen(word));
}

/* ---- objects ---- */

/* Reads the header of section i; false when it is outside of the file. */
static bool section_header(Bytes object, const Elf64_Ehdr *header, size_t i, Elf64_Shdr *section) {
    uint64_t offset = header->e_shoff + i * sizeof *section;
    if (header->e_shentsize != sizeof *section || !has(object, offset, sizeof *section))
        return false;
    memcpy(section, object.at + offset, sizeof *section);
    return true;
}

static bool is_ours(Bytes object, const Elf64_Shdr *names, const Elf64_Shdr *section) {
    static const char name[] = OBJECT_SECTION;
    uint64_t offset = names->sh_offset + section->sh_name;
    return has(object, offset, sizeof name) && !memcmp(object.at + offset, name, sizeof name) &&
           has(object, section->sh_offset, section->sh_size);
}

static void add_object(Arena *arena, Bytes object, const char *member, ObjectSections *sections) {
    static const unsigned char own[] = {ELFMAG0, ELFMAG1,    ELFMAG2,
                                        ELFMAG3, ELFCLASS64, ELFDATA2LSB};
    Elf64_Ehdr header;
    Elf64_Shdr names, section;
    if (!has(object, 0, sizeof header) || memcmp(object.at, own, sizeof own) != 0) return;
    memcpy(&header, object.at, sizeof header);
    if (!section_header(object, &header, 0, &section)) return;
    size_t count = header.e_shnum ? header.e_shnum : section.sh_size;
    size_t strings = header.e_shstrndx == SHN_XINDEX ? section.sh_link : header.e_shstrndx;
    if (header.e_type != ET_REL || !section_header(object, &header, strings, &names)) return;
    for (size_t i = 1; i < count && section_header(object, &header, i, &section); i++)
        if (is_ours(object, &names, &section))
            array_push(
                arena, sections,
                (ObjectSection){member,
                                arena_copy(arena, object.at + section.sh_offset, section.sh_size),
                                section.sh_size});
}

/* ---- archives ---- */

/* Returns the name of a member: "a.o/", or "/12" for a name in the table of long names. */
static const char *member_name(Arena *arena, const struct ar_hdr *header, Bytes names) {
    const char *name = arena_substring(arena, header->ar_name, sizeof header->ar_name);
    if (name[0] == '/' && name[1] >= '0' && name[1] <= '9') {
        size_t at = strtoul(name + 1, NULL, 10), length = 0;
        while (at + length < names.size && names.at[at + length] != '\n') length++;
        name = at < names.size ? arena_substring(arena, names.at + at, length) : name;
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
    Bytes object = map_file(arena_format(arena, "%.*s%s", folder, archive, member));
    add_object(arena, object, member, sections);
    unmap(object);
}

static void add_archive(Arena *arena, const char *path, Bytes archive, bool thin,
                        ObjectSections *sections) {
    Bytes names = {0};
    struct ar_hdr header;
    for (uint64_t at = SARMAG; has(archive, at, sizeof header);) {
        memcpy(&header, archive.at + at, sizeof header);
        at += sizeof header;
        uint64_t size =
            strtoull(arena_substring(arena, header.ar_size, sizeof header.ar_size), NULL, 10);
        bool table = header.ar_name[0] == '/' && strchr("/ S", header.ar_name[1]);
        bool inside = table || !thin;
        if (inside && !has(archive, at, size)) return;
        if (header.ar_name[0] == '/' && header.ar_name[1] == '/')
            names = (Bytes){archive.at + at, size};
        else if (!table && thin)
            add_beside(arena, path, member_name(arena, &header, names), sections);
        else if (!table)
            add_object(arena, (Bytes){archive.at + at, size}, member_name(arena, &header, names),
                       sections);
        at += inside ? size + size % 2 : 0;
    }
}

void object_sections(Arena *arena, const char *path, ObjectSections *sections) {
    Bytes file = map_file(path);
    bool thin = begins_with(file, "!<thin>\n");
    if (thin || begins_with(file, ARMAG))
        add_archive(arena, path, file, thin, sections);
    else
        add_object(arena, file, NULL, sections);
    unmap(file);
}
