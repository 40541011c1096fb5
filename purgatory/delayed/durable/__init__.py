"""Operations whose deadline survives a restart."""
