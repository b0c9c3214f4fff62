export { simulate, type SimulationOptions, type SimulationResult } from './simulate/simulate.ts'
export { type ClassMeasures, type Measures } from './simulate/measures.ts'
