"""Where does the memory of short-lived objects come from? From those of their class that went before. Compiled twin.

A class has its own `tp_alloc` and `tp_free` (Python/C API Reference, "Type Objects"), as the interpreter has for floats and
tuples. Subclasses and all other classes do without: Python gives the ones of Python code the usual pair.
"""

cdef extern from *:
    """
    #include <string.h>

    enum { EPOQUE_CLASSES = 4, EPOQUE_KEPT = 16384 };  /* objects of each class: of a handle, two MiB */

    struct epoque_freelist {
        PyTypeObject *type;
        int count;
        PyObject *first;  /* each has the next one in the place of its first field */
    };
    static struct epoque_freelist epoque_freelists[EPOQUE_CLASSES];

    static inline struct epoque_freelist *epoque_freelist_of(PyTypeObject *type) {
        struct epoque_freelist *list = epoque_freelists;
        for (; list < epoque_freelists + EPOQUE_CLASSES; list++)
            if (list->type == type) return list;
        return NULL;
    }

    static inline PyObject **epoque_next(PyObject *object) { return (PyObject **)(object + 1); }

    static PyObject *epoque_alloc(PyTypeObject *type, Py_ssize_t items) {
        struct epoque_freelist *list = epoque_freelist_of(type);
        PyObject *object = list ? list->first : NULL;
        if (object == NULL) return PyType_GenericAlloc(type, items);
        list->first = *epoque_next(object);
        list->count--;
        memset(object + 1, 0, (size_t)type->tp_basicsize - sizeof(PyObject));
        PyObject_Init(object, type);
        PyObject_GC_Track(object);
        return object;
    }

    static void epoque_free(void *memory) {
        PyObject *object = (PyObject *)memory;
        struct epoque_freelist *list = epoque_freelist_of(Py_TYPE(object));
        if (list == NULL || list->count == EPOQUE_KEPT) {
            PyObject_GC_Del(object);
            return;
        }
        *epoque_next(object) = list->first;
        list->first = object;
        list->count++;
    }

    /* Only for classes whose objects the garbage collector knows and do not count their type, and under a GIL. */
    static void epoque_keep(PyObject *cls) {
    #ifndef Py_GIL_DISABLED
        PyTypeObject *type = (PyTypeObject *)cls;
        struct epoque_freelist *list = epoque_freelist_of(NULL);
        if (list == NULL || !PyType_IS_GC(type) || PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return;
        list->type = type;
        type->tp_alloc = epoque_alloc;
        type->tp_free = epoque_free;
    #else
        (void)cls;
        (void)epoque_alloc;
        (void)epoque_free;
    #endif
    }
    """
    void epoque_keep(object cls)


cdef int keep(object cls) except -1:
    """Let the memory of up to 16,384 instances of `cls` that have gone be used again for the next ones."""
    epoque_keep(cls)
    return 0
