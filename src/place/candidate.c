/* Turns the result of a strategy into a comparable candidate: placed and cut, with its moves and its price. */
#include "place/place.h"

clv_status clv__place_candidate(const clv__place_input *input, clv__place_fn place, clv__arena *arena, clv__candidate *candidate,
                                clv_error *error) {
  *candidate = (clv__candidate){0};
  CLV__TRY(place(input, arena, &candidate->placing, error));
  return clv__place_price(input, arena, candidate, error);
}

clv_status clv__place_price(const clv__place_input *input, clv__arena *arena, clv__candidate *candidate, clv_error *error) {
  const clv__placing *placing = &candidate->placing;
  if (placing->has_cut)
    candidate->cut = placing->cut;
  else
    CLV__TRY(clv__split(input->problem, placing->devices, placing->groups, input->split, arena, &candidate->cut, error));
  CLV__TRY(clv__split_moves(input->problem, &candidate->cut, placing->streamed, arena, &candidate->moves, error));
  return clv__price_cut(input->problem, &candidate->cut, &candidate->moves, arena, &candidate->price, error);
}
