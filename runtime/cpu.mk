# cpu.mk: what a program for CPUs needs beside program.mk: OpenBLAS with OpenMP (Debian's
# libopenblas-openmp-dev), and oneDNN (libdnnl-dev, uthash-dev) where it is there.
#
#     make ONEDNN=0             without oneDNN, though it is there
#
# OPENBLAS_HEADERS and OPENBLAS_LIBRARIES are the options for another OpenBLAS:
#
#     make OPENBLAS_HEADERS=-I/opt/blas/include OPENBLAS_LIBRARIES="-L/opt/blas/lib -lopenblas"

# ---- what is installed ----

machine := $(shell $(CC) -print-multiarch 2>/dev/null)
OPENBLAS_HEADERS ?= $(addprefix -I,$(firstword $(wildcard /usr/include/$(machine)/openblas-openmp /usr/include/openblas)))
openblas := $(firstword $(wildcard /usr/lib/$(machine)/openblas-openmp))
OPENBLAS_LIBRARIES ?= $(if $(openblas),-L$(openblas) -Wl$(comma)-rpath$(comma)$(openblas)) -lopenblas

# Only a oneDNN that runs in OpenMP's threads, which are those of the kernels.
onednn_config := $(firstword $(wildcard /usr/include/oneapi/dnnl/dnnl_config.h /usr/local/include/oneapi/dnnl/dnnl_config.h))
ONEDNN ?= $(if $(and $(wildcard /usr/include/uthash.h),$(onednn_config),$(shell \
  grep -s 'DNNL_CPU_RUNTIME DNNL_RUNTIME_OMP' $(onednn_config))),1,0)

# ---- options ----

comma := ,
DEFINES += -DHETU_IN_PROGRAM $(if $(filter 1,$(ONEDNN)),-DHETU_ONEDNN)
HEADERS += $(OPENBLAS_HEADERS)
LIBRARIES += $(OPENBLAS_LIBRARIES) $(if $(filter 1,$(ONEDNN)),-ldnnl)
CFLAGS_ALL += -O3 -fno-math-errno -fno-trapping-math -fwrapv
LINK ?= $(CC)
