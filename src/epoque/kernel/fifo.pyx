# cython: nonecheck=False
"""A queue whose `append` and `popleft` no other thread can split: a ring that keeps its memory. Compiled twin.

Neither runs Python code, so the GIL makes them atomic. A `collections.deque` does the same by method calls; a list must be
allocated anew whenever it was emptied, which for a loop is every turn.
"""

from cpython.object cimport PyObject

cdef extern from "Python.h":
    int PyObject_GC_IsTracked(PyObject *item) noexcept
    void PyObject_GC_Track(PyObject *item) noexcept
    void PyObject_GC_UnTrack(PyObject *item) noexcept

cdef extern from *:
    """
    /* An empty place holds None. References move along with the items; that to the ring is borrowed, because counting
       it for each item would take as long as all the rest. */
    static inline void epoque_put(PyObject *ring, Py_ssize_t index, PyObject *item) {
        Py_INCREF(item);
        PyList_SET_ITEM(ring, index & (PyList_GET_SIZE(ring) - 1), item);
        Py_DECREF(Py_None);
    }

    static inline PyObject *epoque_take(PyObject *ring, Py_ssize_t index) {
        PyObject *item = PyList_GET_ITEM(ring, index);
        Py_INCREF(Py_None);
        PyList_SET_ITEM(ring, index, Py_None);
        return item;
    }
    """
    void epoque_put(PyObject *ring, Py_ssize_t index, PyObject *item)
    object epoque_take(PyObject *ring, Py_ssize_t index)
    Py_ssize_t room "PyList_GET_SIZE"(PyObject *ring)
    PyObject *item_at "PyList_GET_ITEM"(PyObject *ring, Py_ssize_t index)

cdef enum:
    FIRST_SIZE = 64
    FLOOD = 256  # items; the garbage collector begins a round for each 700 to 2,000 new objects


cdef class Fifo:
    """First in, first out."""

    def __cinit__(self):
        self._slots = [None] * FIRST_SIZE
        self._head = 0
        self._count = 0

    cdef int append(self, object item) except -1:
        if self._count == room(<PyObject *>self._slots):
            _grow(self)
        epoque_put(<PyObject *>self._slots, self._head + self._count, <PyObject *>item)
        self._count += 1
        if self._hiding and self._count > FLOOD:
            PyObject_GC_UnTrack(<PyObject *>item)
        return 0

    cdef object popleft(self):
        """The first item; the caller has seen that there is one."""
        cdef Py_ssize_t index = self._head
        cdef PyObject *item = item_at(<PyObject *>self._slots, index)
        self._head = (index + 1) & (room(<PyObject *>self._slots) - 1)
        self._count -= 1
        if self._hiding and item.ob_refcnt > 1:
            _track(item)
        return epoque_take(<PyObject *>self._slots, index)

    cdef int clear(self) except -1:
        hide(self, False)
        # What dies with the items may append again.
        slots = self._slots
        self._slots = [None] * FIRST_SIZE
        self._head = 0
        self._count = 0
        slots.clear()
        return 0


cdef int hide(Fifo queue, bint hiding) except -1:
    """Keep items from the garbage collector while there are many and nobody else has them, or show it all of them.

    It would visit each of them only to find it in use, and in a flood nothing else is new. To be done while the
    owner cannot be garbage: what hidden items refer to is none, as far as the collector can tell.
    """
    cdef Py_ssize_t index
    if queue._hiding and not hiding:
        for index in range(queue._count):
            _track(_at(queue, index))
    queue._hiding = hiding
    return 0


cdef int show(object item) noexcept:
    """Somebody else gets an item that was taken out; the garbage collector must know of it from now on."""
    return _track(<PyObject *>item)


cdef list items(Fifo queue):
    """What is in line, in order."""
    cdef list found = []
    cdef Py_ssize_t index
    for index in range(queue._count):
        found.append(<object>_at(queue, index))
    return found


cdef PyObject *_at(Fifo queue, Py_ssize_t index) noexcept:
    cdef PyObject *ring = <PyObject *>queue._slots
    return item_at(ring, (queue._head + index) & (room(ring) - 1))


cdef int _track(PyObject *item) noexcept:
    if not PyObject_GC_IsTracked(item):
        PyObject_GC_Track(item)
    return 0


cdef int _grow(Fifo queue) except -1:
    """Double the ring, begun at index 0."""
    cdef list larger
    cdef Py_ssize_t size = room(<PyObject *>queue._slots)
    cdef Py_ssize_t index
    while queue._count == size:
        larger = [None] * (2 * size)
        # Making a list may collect garbage (Python 3.11). A finalizer may append, and let other threads do so and the
        # loop run on: only what is in line now may move, and nothing from here on makes an object.
        if queue._count == room(<PyObject *>queue._slots) == size:
            for index in range(size):
                epoque_put(<PyObject *>larger, index, _at(queue, index))
            queue._slots = larger
            queue._head = 0
        size = room(<PyObject *>queue._slots)
    return 0
