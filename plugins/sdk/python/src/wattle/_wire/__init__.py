"""The implementation of the imports in a component, by the bindings that the build generates.

Importing a module of this package makes the component import the interface of the same name.
"""
