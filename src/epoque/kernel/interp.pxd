cdef object copy_context()
cdef object copy(object context)
cdef object call(object context, object callback, tuple args)
cdef object attempt(object context, object callback, tuple args)
cdef object call_method(object context, object target, str name, object argument)
cdef object call_method_2(object context, object target, str name, object first, object second)
cdef int drop_dict(object owner) except -1
cdef int check_signals() except -1
cdef int tell_of_forks(object owner) except -1
cdef unsigned long thread_ident() noexcept
