"""What a loop asks of the interpreter: contexts (PEP 567), signals that wait, threads, forks."""

import os
import weakref

from cpython.exc cimport PyErr_CheckSignals

cdef extern from *:
    """
    /* PyContext_Exit may run while an exception is set; contextvars.Context.run relies on the same. */
    static PyObject *epoque_call(PyObject *context, PyObject *callback, PyObject *args) {
        PyObject *result;
        if (PyContext_Enter(context) < 0) return NULL;
        result = PyObject_Vectorcall(callback, PySequence_Fast_ITEMS(args), PyTuple_GET_SIZE(args), NULL);
        if (PyContext_Exit(context) < 0) { Py_XDECREF(result); return NULL; }
        return result;
    }

    /* What is raised is returned, at no cost for what is not: try and except would look up the thread's state. */
    static PyObject *epoque_attempt(PyObject *context, PyObject *callback, PyObject *args) {
        PyObject *result = epoque_call(context, callback, args);
        if (result != NULL) {
            Py_DECREF(result);
            Py_RETURN_NONE;
        }
        if (PyErr_ExceptionMatches(PyExc_SystemExit) || PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) return NULL;
    #if PY_VERSION_HEX >= 0x030C0000
        return PyErr_GetRaisedException();
    #else
        {
            PyObject *kind, *value, *traceback;
            PyErr_Fetch(&kind, &value, &traceback);
            PyErr_NormalizeException(&kind, &value, &traceback);
            if (traceback != NULL) {
                PyException_SetTraceback(value, traceback);
                Py_DECREF(traceback);
            }
            Py_XDECREF(kind);
            return value;
        }
    #endif
    }

    static PyObject *epoque_call_method(PyObject *context, PyObject *target, PyObject *name, PyObject *argument) {
        PyObject *result;
        if (PyContext_Enter(context) < 0) return NULL;
        result = PyObject_CallMethodOneArg(target, name, argument);
        if (PyContext_Exit(context) < 0) { Py_XDECREF(result); return NULL; }
        return result;
    }

    static PyObject *epoque_call_method_2(PyObject *context, PyObject *target, PyObject *name, PyObject *first,
                                          PyObject *second) {
        PyObject *args[] = {target, first, second}, *result;
        if (PyContext_Enter(context) < 0) return NULL;
        result = PyObject_VectorcallMethod(name, args, 3, NULL);
        if (PyContext_Exit(context) < 0) { Py_XDECREF(result); return NULL; }
        return result;
    }

    static void epoque_drop_dict(PyObject *owner) {
        if (Py_TYPE(owner)->tp_dictoffset > 0)
            Py_CLEAR(*(PyObject **)((char *)owner + Py_TYPE(owner)->tp_dictoffset));
    }
    """
    void epoque_drop_dict(object owner)
    object epoque_call(object context, object callback, object args)
    object epoque_attempt(object context, object callback, object args)
    object PyContext_Copy(object context)
    object epoque_call_method(object context, object target, object name, object argument)
    object epoque_call_method_2(object context, object target, object name, object first, object second)
    object PyContext_CopyCurrent()
    unsigned long PyThread_get_thread_ident() noexcept

_told = weakref.WeakSet()


cdef object copy_context():
    return PyContext_CopyCurrent()


cdef object copy(object context):
    return PyContext_Copy(context)


cdef object call(object context, object callback, tuple args):
    return epoque_call(context, callback, args)


cdef object attempt(object context, object callback, tuple args):
    return epoque_attempt(context, callback, args)


cdef object call_method(object context, object target, str name, object argument):
    return epoque_call_method(context, target, name, argument)


cdef object call_method_2(object context, object target, str name, object first, object second):
    return epoque_call_method_2(context, target, name, first, second)


cdef int drop_dict(object owner) except -1:
    """Let a new object be without the empty dictionary that Cython makes; the interpreter makes one when it is needed.

    Until then it takes no memory, and methods are found without a look into it.
    """
    epoque_drop_dict(owner)
    return 0


cdef int check_signals() except -1:
    PyErr_CheckSignals()
    return 0


cdef unsigned long thread_ident() noexcept:
    return PyThread_get_thread_ident()


cdef int tell_of_forks(object owner) except -1:
    """Call ``owner._forked()`` in every child process that inherits `owner`, before anything else runs there.

    And ``owner._about_to_fork()`` in the thread that forks this process, before it does.
    """
    _told.add(owner)
    return 0


def _forked():
    for owner in list(_told):
        owner._forked()


def _about_to_fork():
    for owner in list(_told):
        owner._about_to_fork()


os.register_at_fork(before=_about_to_fork, after_in_child=_forked)
