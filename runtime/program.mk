# program.mk: builds a program that hetucc emitted for CUDA. The Makefile beside it says what the program consists of.
#
#     make -j                   builds it
#     make ARCH="sm_80 sm_90"   for these GPUs, and later ones, which compile the PTX of the last when they start; ARCH=native: for this
#                               machine's alone, which is the default where there is one
#     make MPI=0 NCCL=0 NVTX=0  without MPI, NCCL, or NVTX (names in profilers), though they are there; a program of one rank needs none
#     make CUDNN=0              without cuDNN's attention, though cuDNN (9.16 or later) is there
#     make WERROR=1             warnings are errors
#     make clean
#
# CUDA_HOME, CUBLAS_HOME, NCCL_HOME and CUDNN_HOME say where CUDA, cuBLAS, NCCL and cuDNN are, NVCC and CC which compilers run. BUILD is the folder for objects; RUNTIME_BUILD
# that for those of the runtime, which several programs may share. With RUNTIME_CACHE the objects of the runtime lie in a folder of that one which is named after all that they are
# made of: sources, compilers and their options; a program that finds them there builds its own files alone.

BUILD ?= build
RUNTIME_BUILD ?= $(BUILD)

# ---- what is installed ----

found = $(shell command -v $(1) 2>/dev/null)
NVCC ?= $(firstword $(call found,nvcc) $(wildcard $(CUDA_HOME)/bin/nvcc /usr/local/cuda/bin/nvcc) nvcc)
CUDA_HOME ?= $(patsubst %/bin/nvcc,%,$(realpath $(firstword $(call found,$(firstword $(NVCC))) $(NVCC))))

# cuBLAS is a part of CUDA, or a package of pip.
ifeq ($(wildcard $(addsuffix /include/cublasLt.h,$(CUDA_HOME) /usr /usr/local)),)
CUBLAS_HOME ?= $(patsubst %/include/cublasLt.h,%,$(firstword $(wildcard \
  $(addsuffix /*/include/cublasLt.h,$(shell python3 -c 'import nvidia; print(*nvidia.__path__)' 2>/dev/null)))))
endif

ifneq ($(filter-out 1,$(RANKS)),)
MPI ?= $(if $(call found,mpicc),1,0)
nccl_header := $(firstword $(wildcard $(addsuffix /include/nccl.h,$(NCCL_HOME) $(CUDA_HOME) /usr /usr/local)) \
  $(wildcard $(shell python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])' 2>/dev/null)/include/nccl.h))
NCCL_HOME ?= $(patsubst %/include/nccl.h,%,$(nccl_header))
NCCL ?= $(if $(nccl_header),1,0)
endif
MPI ?= 0
NCCL ?= 0

NVTX ?= $(if $(wildcard $(CUDA_HOME)/include/nvtx3/nvToolsExt.h),1,0)

# The version of the cuDNN whose header was found, as one number: 91600 is 9.16.
cudnn_header := $(firstword $(wildcard $(addsuffix /include/cudnn_graph.h,$(CUDNN_HOME) $(CUDA_HOME) /usr /usr/local)) \
  $(wildcard $(shell python3 -c 'import nvidia.cudnn; print(list(nvidia.cudnn.__path__)[0])' 2>/dev/null)/include/cudnn_graph.h))
CUDNN_HOME ?= $(patsubst %/include/cudnn_graph.h,%,$(cudnn_header))
cudnn_version := $(if $(cudnn_header),$(shell awk '/define CUDNN_MAJOR/ {v += 10000 * $$3} /define CUDNN_MINOR/ {v += 100 * $$3} END {print v + 0}' \
  $(CUDNN_HOME)/include/cudnn_version.h 2>/dev/null))
CUDNN ?= $(if $(shell test "$(cudnn_version)" -ge 91600 2>/dev/null && echo found),1,0)

ifndef ARCH
ARCH := $(if $(shell nvidia-smi -L 2>/dev/null),native,sm_80 sm_90)
endif

# ---- options ----

DEFINES := $(if $(filter 1,$(MPI)),-DHETU_MPI) $(if $(filter 1,$(NCCL)),-DHETU_NCCL) $(if $(filter 1,$(NVTX)),-DHETU_NVTX) $(if $(filter 1,$(CUDNN)),-DHETU_CUDNN)
HEADERS := -Iinclude -Iruntime
ifneq ($(CUBLAS_HOME),)
CUBLAS_HEADERS := -isystem $(CUBLAS_HOME)/include
CUBLAS_LIBRARIES := -Wl,-rpath,$(CUBLAS_HOME)/lib $(lastword $(sort $(wildcard $(CUBLAS_HOME)/lib/libcublasLt.so*)))
endif
CUBLAS_LIBRARIES ?= -lcublasLt
CUDA_LIBRARIES ?= -L$(CUDA_HOME)/lib64 -L$(CUDA_HOME)/lib -Wl,-rpath,$(CUDA_HOME)/lib64 $(CUBLAS_LIBRARIES) -lcudart_static -ldl -lrt
LIBRARIES := $(CUDA_LIBRARIES)
ifeq ($(MPI),1)
mpi := $(shell mpicc -show)
HEADERS += $(filter -I%,$(mpi))
LIBRARIES += $(filter -L% -l% -Wl%,$(mpi))
endif
ifeq ($(NCCL),1)
NCCL_HEADERS ?= $(if $(filter-out /usr $(CUDA_HOME),$(NCCL_HOME)),-I$(NCCL_HOME)/include)
NCCL_LIBRARIES ?= -L$(NCCL_HOME)/lib -Wl,-rpath,$(NCCL_HOME)/lib -l:libnccl.so.2
HEADERS += $(NCCL_HEADERS)
LIBRARIES += $(NCCL_LIBRARIES)
endif
ifeq ($(CUDNN),1)
CUDNN_HEADERS ?= $(if $(filter-out /usr $(CUDA_HOME),$(CUDNN_HOME)),-isystem $(CUDNN_HOME)/include)
CUDNN_LIBRARIES ?= -L$(CUDNN_HOME)/lib -Wl,-rpath,$(CUDNN_HOME)/lib -l:libcudnn.so.9
HEADERS += $(CUDNN_HEADERS)
LIBRARIES += $(CUDNN_LIBRARIES)
endif
LIBRARIES += -fopenmp -lpthread -lm -l:libz.so.1

code = $(subst sm_,,$(1))
named = $(sort $(filter-out native,$(ARCH)))
newest = $(lastword $(sort $(foreach arch,$(named),$(if $(filter sm_1%,$(arch)),1,0):$(arch))))
GENCODE := $(if $(filter native,$(ARCH)),-arch=native) \
  $(foreach arch,$(named),-gencode arch=compute_$(call code,$(arch)),code=$(arch)) \
  $(foreach arch,$(call code,$(lastword $(subst :, ,$(newest)))),-gencode arch=compute_$(arch),code=compute_$(arch))
WARNINGS := -Wall -Wextra
ifdef WERROR
WARNINGS += -Werror
NVCC_WERROR := -Werror all-warnings
endif
comma := ,
empty :=
NVCCFLAGS ?= $(GENCODE) $(NVCC_WERROR) -Xcompiler $(subst $(empty) ,$(comma),$(WARNINGS) -Wno-missing-field-initializers)
CFLAGS_ALL := -std=gnu17 -D_GNU_SOURCE -O2 -fopenmp $(WARNINGS)
LINK ?= $(CXX)

# ---- what is built ----

absent := $(if $(filter 1,$(MPI)),,runtime/transport/mpi% runtime/exchange/mpi%) $(if $(filter 1,$(NCCL)),,runtime/cuda/nccl%) \
  $(if $(filter 1,$(CUDNN)),,runtime/cuda/cudnn%)
RUNTIME := $(filter-out $(absent),$(sort $(wildcard runtime/*/*.c runtime/*/*/*.c runtime/*/*.cu)))
objects = $(patsubst %,$(2)/%.o,$(1))

# What the objects of the runtime are made of, as a number: the texts of its files, options, compilers, and the GPU that -arch=native is for.
ifneq ($(RUNTIME_CACHE),)
quoted = '$(subst ','\'',$(1))'
runtime_text = $(sort $(RUNTIME) $(wildcard include/hetu/*.h runtime/*/*.h runtime/*/*/*.h))
runtime_made = $(NVCC) $(NVCCFLAGS) $(CC) $(CFLAGS_ALL) $(DEFINES) $(HEADERS) $(CUBLAS_HEADERS) $(cudnn_version)
RUNTIME_BUILD := $(RUNTIME_CACHE)/$(firstword $(shell { echo $(call quoted,$(runtime_made)); $(NVCC) --version; $(CC) --version; \
  $(if $(filter native,$(ARCH)),nvidia-smi --query-gpu=name --format=csv$(comma)noheader;) cat runtime/program.mk $(runtime_text); } 2>/dev/null | sha256sum))
endif
PROGRAM_OBJECTS := $(call objects,$(EMITTED) $(USER),$(BUILD))
RUNTIME_OBJECTS := $(call objects,$(RUNTIME),$(RUNTIME_BUILD))

.PHONY: all runtime clean
all: $(PROGRAM)
runtime: $(RUNTIME_OBJECTS)

$(PROGRAM): $(PROGRAM_OBJECTS) $(RUNTIME_OBJECTS)
	$(LINK) $(USER_CFLAGS) -o $@ $^ $(USER_LDLIBS) $(LIBRARIES)

$(RUNTIME_BUILD)/runtime/%.c.o: runtime/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(DEFINES) $(HEADERS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@.part && mv -f $@.part $@

$(RUNTIME_BUILD)/runtime/%.cu.o: runtime/%.cu
	@mkdir -p $(@D)
	$(NVCC) -std=c++20 -O3 $(NVCCFLAGS) $(DEFINES) $(HEADERS) $(CUBLAS_HEADERS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@.part && mv -f $@.part $@

# The file that includes the user's source, and the user's others, are compiled as the user said.
$(BUILD)/%.main.c.o: %.main.c
	@mkdir -p $(@D)
	$(CC) $(USER_CPPFLAGS) $(USER_CFLAGS) -Wno-unknown-pragmas -isystem include -MMD -MP -MF $(@:.o=.d) -c $< -o $@

$(BUILD)/source/%.c.o: source/%.c
	@mkdir -p $(@D)
	$(CC) $(USER_CPPFLAGS) $(USER_CFLAGS) -Wno-unknown-pragmas -isystem include -MMD -MP -MF $(@:.o=.d) -c $< -o $@

$(BUILD)/source/%.cu.o: source/%.cu
	@mkdir -p $(@D)
	$(NVCC) -std=c++20 -O3 $(NVCCFLAGS) $(USER_CPPFLAGS) -Iinclude -MMD -MP -MF $(@:.o=.d) -c $< -o $@

$(BUILD)/%.image.c.o: %.image.c
	@mkdir -p $(@D)
	$(CC) -std=gnu17 $(WARNINGS) -Iinclude -MMD -MP -MF $(@:.o=.d) -c $< -o $@

$(BUILD)/%.notes.c.o: %.notes.c
	@mkdir -p $(@D)
	$(CC) -std=gnu17 $(WARNINGS) -Iinclude -MMD -MP -MF $(@:.o=.d) -c $< -o $@

$(BUILD)/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(NVCC) -std=c++20 -O3 $(NVCCFLAGS) -Iinclude -MMD -MP -MF $(@:.o=.d) -c $< -o $@

clean:
	rm -rf $(PROGRAM) $(BUILD)

-include $(patsubst %.o,%.d,$(PROGRAM_OBJECTS) $(RUNTIME_OBJECTS))
