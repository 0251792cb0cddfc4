# program.mk: builds a program that hetucc emitted, in a folder of its own. The Makefile beside it says
# what the program consists of, and $(BACKEND).mk what its back end needs and lets set.
#
#     make -j                   builds it
#     make MPI=0                without MPI, though it is there; a program of one rank needs none
#     make WERROR=1             warnings are errors
#     make clean
#
# CC says which compiler runs. BUILD is the folder for objects; RUNTIME_BUILD that for those of the
# runtime, which several programs may share. With RUNTIME_CACHE the objects of the runtime lie in a
# folder of that one which is named after all that they are made of: sources, compilers and their
# options; a program that finds them there builds its own files alone.

BUILD ?= build
RUNTIME_BUILD ?= $(BUILD)

# ---- what is installed ----

found = $(shell command -v $(1) 2>/dev/null)
ifneq ($(filter-out 1,$(RANKS)),)
MPI ?= $(if $(call found,mpicc),1,0)
endif
MPI ?= 0

# ---- options ----

DEFINES := $(if $(filter 1,$(MPI)),-DHETU_MPI)
HEADERS := -Iinclude -Iruntime
LIBRARIES :=
WARNINGS := -Wall -Wextra
ifdef WERROR
WARNINGS += -Werror
endif
ifeq ($(MPI),1)
mpi := $(shell mpicc -show)
HEADERS += $(filter -I%,$(mpi))
ABSENT :=
else
ABSENT := runtime/transport/mpi% runtime/exchange/mpi%
endif
CFLAGS_ALL := -std=gnu17 -D_GNU_SOURCE $(WARNINGS) -fopenmp

include runtime/$(BACKEND).mk

LIBRARIES += $(filter -L% -l% -Wl%,$(mpi)) -fopenmp -lpthread -lm -l:libz.so.1

# ---- what is built ----

RUNTIME := $(filter-out $(ABSENT),$(sort $(wildcard runtime/*/*.c runtime/*/*/*.c runtime/*/*.cu)))
objects = $(patsubst %,$(2)/%.o,$(1))

# What the objects of the runtime are made of, as a number: the texts of its files, options, compilers,
# and what $(BACKEND).mk adds.
ifneq ($(RUNTIME_CACHE),)
quoted = '$(subst ','\'',$(1))'
runtime_text = $(sort $(RUNTIME) $(wildcard include/hetu/*.h runtime/*/*.h runtime/*/*/*.h runtime/*.mk))
runtime_made = $(CC) $(CFLAGS_ALL) $(DEFINES) $(HEADERS) $(BACKEND_MADE)
RUNTIME_BUILD := $(RUNTIME_CACHE)/$(firstword $(shell { echo $(call quoted,$(runtime_made)); $(CC) --version; \
  $(BACKEND_VERSION) cat $(runtime_text); } 2>/dev/null | sha256sum))
endif
PROGRAM_OBJECTS := $(call objects,$(EMITTED) $(USER),$(BUILD))
RUNTIME_OBJECTS := $(call objects,$(RUNTIME),$(RUNTIME_BUILD))

.PHONY: all runtime clean
.DEFAULT_GOAL := all
all: $(PROGRAM)
runtime: $(RUNTIME_OBJECTS)

$(PROGRAM): $(PROGRAM_OBJECTS) $(RUNTIME_OBJECTS)
	$(LINK) $(USER_CFLAGS) -o $@ $^ $(USER_LDLIBS) $(LIBRARIES)

DEPEND = -MMD -MP -MF $(@:.o=.d)

$(RUNTIME_BUILD)/runtime/%.c.o: runtime/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(DEFINES) $(HEADERS) $(DEPEND) -MT $@ -c $< -o $@.part && mv -f $@.part $@

# The file that includes the user's source, and the user's others, are compiled as the user said.
$(BUILD)/%.main.c.o: %.main.c
	@mkdir -p $(@D)
	$(CC) $(USER_CPPFLAGS) $(USER_CFLAGS) -Wno-unknown-pragmas -isystem include $(DEPEND) -c $< -o $@

$(BUILD)/source/%.c.o: source/%.c
	@mkdir -p $(@D)
	$(CC) $(USER_CPPFLAGS) $(USER_CFLAGS) -Wno-unknown-pragmas -isystem include $(DEPEND) -c $< -o $@

# EMITTED_CFLAGS are the options of each file, which the Makefile has.
$(BUILD)/%.c.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CODE_CFLAGS) -std=gnu17 $(WARNINGS) -Iinclude $(EMITTED_CFLAGS) $(DEPEND) -c $< -o $@

$(RUNTIME_BUILD)/runtime/%.cu.o: runtime/%.cu
	@mkdir -p $(@D)
	$(NVCC) -std=c++20 -O3 $(NVCCFLAGS) $(DEFINES) $(HEADERS) $(CUBLAS_HEADERS) $(DEPEND) -MT $@ -c $< -o $@.part && mv -f $@.part $@

$(BUILD)/source/%.cu.o: source/%.cu
	@mkdir -p $(@D)
	$(NVCC) -std=c++20 -O3 $(NVCCFLAGS) $(USER_CPPFLAGS) -Iinclude $(DEPEND) -c $< -o $@

$(BUILD)/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(NVCC) -std=c++20 -O3 $(NVCCFLAGS) -Iinclude $(DEPEND) -c $< -o $@

clean:
	rm -rf $(PROGRAM) $(BUILD)

-include $(patsubst %.o,%.d,$(PROGRAM_OBJECTS) $(RUNTIME_OBJECTS))
